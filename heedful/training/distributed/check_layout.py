"""Which layouts can work: those that cannot, with this model or with these processes, are refused."""

from __future__ import annotations

from torch import nn

from heedful.attention import Bias
from heedful.errors import Refusal
from heedful.looking import attends
from heedful.objectives.head_terms import LOOKING, HeadTerms, looks
from heedful.training.spec.run_spec import RunSpec
from heedful.training.spec.training_spec import TrainingSpec


def exchanges(model: nn.Module) -> bool:
    """Whether layers of a model exchange something."""
    from heedful.blocks import Exchange

    return any(isinstance(part, Exchange) for part in model.modules())


def check_layout(model: nn.Module, run: RunSpec, kind: str) -> None:
    """Refuses what does not go with a layout, however many processes there are."""
    training, heads, looking = run.training, HeadTerms.of(run.objective), looks(run.objective)
    if (training.recompute or kind == "fsdp") and exchanges(model):
        key = "training.recompute" if training.recompute else "training.parallel=fsdp"
        raise Refusal(f"{key} takes blocks one by one, and those of this model.stack exchange something; leave one out")
    if training.recompute and looking:
        raise Refusal(
            f"objective.{looking} looks into blocks that training.recompute goes through twice; leave one out"
        )
    if heads.policy:
        from heedful.objectives.head_losses.policy_gradient import choosers

        choosers(model)
    if heads.span:
        from heedful.objectives.head_losses.span_loss import farness

        farness(model)
    if looking in LOOKING and not attends(model):
        raise Refusal(f"objective.{looking} is for heads, and this model has none; leave it out")
    if training.recompute and any(isinstance(part, Bias) and list(part.parameters()) for part in model.modules()):
        raise Refusal("training.recompute needs a model.bias that does not learn; leave one of the two out")
    if kind == "fsdp":
        check_parts(model, training)


def check_parts(model: nn.Module, training: TrainingSpec) -> None:
    """Refuses what needs each weight in one piece, which FSDP has in parts."""
    if training.dtype == "float16" or training.optimiser == "adafactor":
        key = "dtype" if training.dtype == "float16" else "optimiser"
        cure = "bfloat16" if key == "dtype" else "adamw"
        told = f"training.{key}={getattr(training, key)} needs each weight in one piece, and fsdp has them in parts"
        raise Refusal(f"{told}; use training.{key}={cure}, or training.parallel=ddp")
    if training.lora is not None:
        raise Refusal("training.lora adds to whole matrices, and fsdp has them in parts; use training.parallel=ddp")
    if getattr(getattr(model, "spec", None), "searched", False):
        raise Refusal("an autoformer learns by parts of its weights, and fsdp has them in parts; use ddp")
    if training.compile:
        raise Refusal("training.compile does not go with training.parallel=fsdp; set training.compile=false")
