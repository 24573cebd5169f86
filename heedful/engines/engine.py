"""Inference engines by name, and which of them serve a model: the one place where that is chosen."""

from __future__ import annotations

from typing import Literal

from torch import nn

from heedful.engines.tree import Model
from heedful.errors import Refusal
from heedful.registry import Registry

Weights = Literal["float32", "float16"]  # as which matrices are packed on a CPU: as they are, or rounded


class Engine:
    """Inference engine: parts of its own in the places of a model's. Law: they answer what the model answers."""

    def refuses(self, model: nn.Module) -> str:
        """Why it does not serve a model, in one sentence that names the cure; nothing where it does."""
        raise NotImplementedError

    def runner(self, model: Model) -> Model:
        """A tree with the engine's parts that shares all parameters of the model, which stays as it is."""
        raise NotImplementedError

    def refresh(self, runner: nn.Module) -> None:
        """Looks whether the parameters have changed since a runner was made, by somebody who learned meanwhile."""
        raise NotImplementedError


ENGINES: Registry[type[Engine]] = Registry(
    "engine",
    "heedful.engines",
    {
        "prepacked": "heedful.engines.prepacked:Prepacked",
        "float16": "heedful.engines.prepacked:Halved",
        "fused_block": "heedful.engines.fused_block:FusedBlocks",
        "decode_kernel": "heedful.engines.decode_kernel:DecodeKernel",
    },
)


def chosen(model: nn.Module, weights: Weights = "float32") -> list[str]:
    """Engine selection: those that serve a model as it answers, each over those before it.

    Rounded weights must be asked for, and are refused where they cannot be had; the others serve where they can. The
    kernel of the newest token is for captured steps alone, which ask for it themselves.
    """
    packs = "prepacked" if weights == "float32" else weights
    why = {name: ENGINES.named(name)().refuses(model) for name in (packs, "fused_block")}
    if weights != "float32" and why[packs]:
        raise Refusal(why[packs])
    return [name for name, refusal in why.items() if not refusal]


def runner(model: Model, weights: Weights = "float32") -> Model:
    """The model as those engines run it that are `chosen`; the model itself where none serves it."""
    for name in chosen(model, weights):
        model = ENGINES.named(name)().runner(model)
    return model


def refresh(runner: nn.Module) -> None:
    """Has a runner know the parameters as they are now, after somebody may have learned."""
    for name in ("prepacked", "fused_block"):
        ENGINES.named(name)().refresh(runner)


def refusals(model: nn.Module) -> dict[str, str]:
    """Why each engine does not serve a model, by name; nothing for those that do."""
    return {name: ENGINES.named(name)().refuses(model) for name in ENGINES}
