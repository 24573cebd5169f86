"""Training config: how long and how fast a model learns, on what precision, and when it is scored and saved."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST = 1_000_000_000  # steps, samples or tokens: decades of them
Count = Annotated[int, Field(ge=1, le=MOST)]
Whole = Annotated[int, Field(ge=0, le=MOST)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
BETAS = [0.9, 0.98]
Parallel = Literal["auto", "none", "ddp", "fsdp"]


class Lora(BaseModel):
    """Of which rank and where small products learn in the place of whole matrices (Hu et al., 2022)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rank: Count = 8
    """The rank of the updates."""
    alpha: Positive = 16.0
    """The strength of the updates: they are multiplied by alpha / rank."""
    parts: Annotated[list[str], Field(min_length=1)] = ["project"]
    """Which layers of a block get updates: `project`, `join`, `attention`, `feedforward`."""


class TrainingSpec(BaseModel):
    """How long and how fast a model learns."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    steps: Count = 2000
    """The number of optimiser steps."""
    minutes: Annotated[float, Field(gt=0.0, le=1e6)] | None = None
    """As many steps are taken as fit into this time, validation included, instead of `steps`."""
    batch: Count = 64
    """The number of samples in a step, over all micro-batches and processes; `auto`: as many as fit."""
    tokens: Whole = 0
    """If above 0, the number of tokens in a step, padding included, instead of `batch`."""
    accumulate: Count = 1
    """The number of micro-batches whose gradients make one step."""
    rate: Positive = 1e-3
    """The learning rate at its peak; `find` looks for it with a range test."""
    schedule: Literal["cosine", "inverse_root", "constant", "stable_decay"] = "cosine"
    """How the learning rate falls after the warm-up."""
    warmup: Whole = 100
    """The number of steps in which the learning rate rises."""
    decay: Share = 0.2
    """The share of the steps in which the schedule `stable_decay` falls."""
    optimiser: Literal["adamw", "sgd", "adafactor", "muon"] = "adamw"
    """The optimiser."""
    momentum: Share | None = None
    """The momentum of `sgd` (0.9 if unset) and `muon` (0.95 if unset)."""
    weight_decay: NotNegative = 0.01
    """The weight decay of matrices; norms and biases do not decay."""
    betas: Annotated[list[Share], Field(min_length=2, max_length=2)] = BETAS
    """The two betas of `adamw`, and of what `muon` leaves to it."""
    clip: NotNegative = 1.0
    """The largest norm of the gradient, above which it is scaled down; 0 for no limit."""
    freeze: list[str] = []
    """Paths of parts whose weights stay as they are, such as `inputs` or `encoder.blocks.0`."""
    lora: Lora | None = None
    """Learns low-rank updates instead of whole matrices (LoRA), merged when the model is saved."""
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """The learning rate of each block, as a share of that of the block above it."""
    average_last: Whole = 0
    """The number of last checkpoints whose mean is tried at the end (Vaswani et al., 2017); 0 for none."""
    average: Share = 0.0
    """The decay of the moving average of weights (EMA), which is what is scored and saved; 0 for none."""
    dtype: Literal["auto", "float32", "tf32", "bfloat16", "float16", "float64"] = "auto"
    """The precision of training; `auto` is bfloat16 on a GPU and float32 on a CPU."""
    compile: bool = False
    """Whether the model is compiled by `torch.compile`."""
    graphs: bool = False
    """Whether training steps run as CUDA graphs, which pays for small models on a GPU."""
    parallel: Parallel = "auto"
    """How processes share the work: `ddp`, `fsdp`, or `auto` (ddp under torchrun)."""
    recompute: bool = False
    """Whether activations are computed again in the backward pass, which saves memory and costs time."""
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    """The number of CPU threads; 0 for one a core."""
    evaluate_every: Count = 250
    """The number of steps between two evaluations on the validation samples."""
    patience: Whole = 0
    """Training stops after this many evaluations without a better score; 0 for never."""
    enough: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Training stops once the validation score is at least this good."""
    log_every: Count = 50
    """The number of steps between two lines of the log."""
    save_every: Count = 500
    """The number of steps between two checkpoints."""
    keep: Count = 2
    """How many checkpoints are kept."""
    loggers: list[str] = ["tensorboard"]
    """What records the run while it goes on: `tensorboard`, `csv`, `wandb`, `mlflow`."""
    profile: bool = False
    """Whether to report where the time of a step goes, and to write a trace."""
    tried: list[Literal["rate", "batch"]] = []
    """Which of these are looked for before the first step; `rate=find` and `batch=auto` set it."""

    @model_validator(mode="before")
    @classmethod
    def _what_is_to_be_found_is_kept(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        found = [key for key, word in (("rate", "find"), ("batch", "auto")) if given.get(key) == word]
        kept = {key: value for key, value in given.items() if key not in found}
        return kept | {"tried": [*given.get("tried", []), *found]} if found else kept

    @model_validator(mode="after")
    def _enough_checkpoints_are_kept(self) -> TrainingSpec:
        if self.average_last > self.keep:
            last = self.average_last
            raise ValueError(f"training.average_last={last} needs as many checkpoints; set training.keep={last}")
        return self

    @model_validator(mode="after")
    def _the_optimiser_knows_what_it_is_told(self) -> TrainingSpec:
        name = self.optimiser
        if self.momentum is not None and name not in ("sgd", "muon"):
            raise ValueError(f"training.momentum is for sgd and muon, not {name}; leave it out")
        if self.betas != BETAS and name not in ("adamw", "muon"):
            raise ValueError(f"training.betas are for adamw, not {name}; leave them out")
        return self
