"""What a run is: its task, data, model, training and seed, whole and validated."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator, model_validator

from heedful.data.readers.reader import FILES
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.objectives import kind_of
from heedful.objectives.head_terms import HeadTerms
from heedful.objectives.objective import numbers_of
from heedful.safe.opening import content
from heedful.safe.plain_data import yaml_of
from heedful.tasks import task_of
from heedful.tasks.task import Task

RECIPE = "recipe:"  # begins the name of what is trained first, with changes: "recipe:resnet training.steps=500"
LIKE = "start"  # as model.family: the model is as the one that it begins with
MOST = 1_000_000_000  # steps, samples or tokens: decades of them
Count = Annotated[int, Field(ge=1, le=MOST)]
Whole = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
BETAS = [0.9, 0.98]

MOVED = (*(one.name for one in fields(HeadTerms)), "smoothing", "consistency", "guidance")  # from training
LARGEST = 1 << 16  # bytes of a YAML file; the longest here has two thousand

Parallel = Literal["auto", "none", "ddp", "fsdp"]


class Lora(BaseModel):
    """Of which rank and where small products learn in the place of whole matrices (Hu et al., 2022)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rank: Count = 8
    alpha: Positive = 16.0  # over the rank: by how much they count
    parts: Annotated[list[str], Field(min_length=1)] = ["project"]  # of blocks: project, join, attention, feedforward


class TrainingSpec(BaseModel):
    """How long and how fast a model learns."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    steps: Count = 2000
    minutes: Annotated[float, Field(gt=0.0, le=1e6)] | None = None  # as many steps as fit, scores counted
    batch: Count = 64  # samples a step, over all micro-batches; auto: the largest that fits memory
    tokens: Whole = 0  # where given, a step takes so many tokens of its longest side, padding counted, not `batch`
    accumulate: Count = 1  # micro-batches a step
    rate: Positive = 1e-3  # the highest learning rate; find: by a range test
    schedule: Literal["cosine", "inverse_root", "constant", "stable_decay"] = "cosine"
    warmup: Whole = 100  # steps in which the rate rises
    decay: Share = 0.2  # the share of the steps in which stable_decay falls
    optimiser: Literal["adamw", "sgd", "adafactor", "muon"] = "adamw"
    momentum: Share | None = None  # of sgd, 0.9 where not given, and of muon, 0.95
    weight_decay: NotNegative = 0.01  # of matrices; norms and biases do not decay
    betas: Annotated[list[Share], Field(min_length=2, max_length=2)] = BETAS  # of adamw
    clip: NotNegative = 1.0  # the longest gradient; 0: any
    freeze: list[str] = []  # paths in the model whose weights stay as they are: inputs, encoder.blocks.0, ...
    lora: Lora | None = None  # learns by small products in chosen parts, and the outputs; merged when it is written
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0  # the rate of a block, as a share of that above it
    average_last: Whole = 0  # checkpoints whose mean is tried at the end (Vaswani et al., 2017); 0: none
    average: Share = 0.0  # how much of the moving average of weights is kept at a step; 0: none is made
    dtype: Literal["auto", "float32", "tf32", "bfloat16", "float16", "float64"] = "auto"  # bfloat16 on a GPU or float32
    compile: bool = False
    graphs: bool = False  # on a GPU: each shape of batch is one CUDA graph, which pays where models are small
    parallel: Parallel = "auto"  # over torchrun's processes; auto: ddp if there are some
    recompute: bool = False  # blocks keep only their inputs, and work the rest out again: less memory, more time
    threads: Annotated[int, Field(ge=0, le=256)] = 0  # of the CPU; 0: as many as there are cores
    evaluate_every: Count = 250  # steps
    patience: Whole = 0  # evaluations without a better score before it stops; 0: never
    enough: Annotated[float, Field(allow_inf_nan=False)] | None = None  # stops when the score is this good
    log_every: Count = 50  # steps
    save_every: Count = 500  # steps
    keep: Count = 2  # checkpoints
    loggers: list[str] = ["tensorboard"]  # that hear of the run as it goes: tensorboard, csv, wandb, mlflow
    profile: bool = False  # says where the time of a step goes, and writes a trace of a few
    tried: list[Literal["rate", "batch"]] = []  # which of these are found before the first step

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


class Expected(BaseModel):
    """The score that a recipe reaches, how long it takes, and where that was measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    score: dict[str, float]
    seconds: float
    where: str


class RunSpec(BaseModel):
    """One YAML file: everything that a run depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    about: str = ""
    task: str
    data: Any
    model: dict[str, Any]
    training: TrainingSpec = TrainingSpec()
    objective: Any = {}  # the numbers of its task's objective, or of one by its name, and of losses on heads
    metrics: list[str] = []  # whose scores are told beside those of the task's own
    decoding: Decoding = Decoding()
    # A run or model folder whose weights it begins with, where they fit; or recipe:NAME, trained first; or a folder for
    # each part of the model that has a family of its own, all of whose weights that part takes over.
    start: str | dict[str, str] = ""
    compare: list[Literal["scratch", "probe"]] = []  # the same without its start, or its outputs alone learning
    teacher: str = ""  # the folder of a run whose model teaches this one, on the very images; or recipe:NAME
    export: list[Literal["hf", "onnx"]] = []  # layouts that the model is also written in, beside model/
    seed: Seed = 1
    expected: Expected | None = None

    @field_validator("compare", "export", mode="before")
    @classmethod
    def _one_will_do(cls, given: Any) -> Any:
        return ([given] if given else []) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _what_is_compared_has_a_start(self) -> RunSpec:
        if self.compare and not self.start:
            word = self.compare[0]
            raise ValueError(f"compare={word} asks what a start is worth, and there is none; give start=FOLDER")
        return self

    @property
    def stages(self) -> bool:
        """Whether something is to be settled before it: what is trained first, or a model as the one it begins with."""
        return any(str(word).startswith(RECIPE) for word in (self.start, self.teacher)) or self.is_like_its_start

    @property
    def is_like_its_start(self) -> bool:
        """Whether its model is as the one that it begins with."""
        return self.model.get("family") == LIKE

    @property
    def whole_start(self) -> str:
        """The folder that the model as a whole begins with."""
        return self.start if isinstance(self.start, str) else ""

    @property
    def part_starts(self) -> dict[str, str]:
        """The folder that each part begins with, by its path."""
        return self.start if isinstance(self.start, dict) else {}

    def text(self) -> str:
        """The whole spec as YAML."""
        values = self.model_dump(mode="json", exclude_none=True)
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)


def reader_of(task: str, data: Any) -> type[BaseModel]:
    """The reader of a task's data, whose keys they have: by their name, alone or among keys."""
    name = data.get("name", FILES) if isinstance(data, dict) else data
    reader: type[BaseModel] = task_of(task).reader(str(name))
    return reader


@cache
def reading(reader: type[BaseModel], objective: type) -> type[RunSpec]:
    """The spec of runs whose data a reader reads, and whose losses an objective judges by its own numbers."""
    numbers = numbers_of(objective, HeadTerms)
    return create_model("RunSpec", __base__=RunSpec, data=(reader, ...), objective=(numbers, numbers()))


def reading_of(values: dict[str, Any]) -> type[RunSpec]:
    """The spec of a run of such values."""
    task = values.get("task")
    if not isinstance(task, str) or "data" not in values:
        return RunSpec
    return reading(reader_of(task, values["data"]), objective_of(task_of(task), values.get("objective")))


def objective_of(task: Task, numbers: Any) -> type:
    """The objective of a run: that of its task, or the one that is named among the numbers."""
    return kind_of(task.objective, numbers.get("name") if isinstance(numbers, dict) else None)


def validate_spec(values: dict[str, Any], where: str = "", kind: type[RunSpec] | None = None) -> RunSpec:
    """The spec of values as read from YAML, or a refusal that names the key, and the file where that is to blame."""
    kind = kind or reading_of(values)
    training = values.get("training")
    for key in [key for key in MOVED if isinstance(training, dict) and key in training]:
        raise Refusal(f"training.{key} is a number of the objective's; write objective.{key}={(training or {})[key]}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        from heedful.models.refusals import refusal

        refused = refusal(error, "", kind)
        raise (Refusal(f"{where}: {refused}") if where else refused) from None


def is_yaml(name: str) -> bool:
    """Whether a recipe is given as a YAML file, and not by its name."""
    return name.endswith((".yaml", ".yml"))


def read_yaml(path: Path) -> dict[str, Any]:
    """The values of a YAML file."""
    try:
        values = yaml_of(content(path, LARGEST).decode("utf-8"))
    except FileNotFoundError:
        raise Refusal(f"{path} does not exist; `heedful recipes` lists what can be trained") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise Refusal(f"{path} cannot be read as YAML: {' '.join(str(error).split())}; mend it") from None
    if not isinstance(values, dict):
        raise Refusal(f"{path} is no recipe; it should hold task, data and model")
    return values
