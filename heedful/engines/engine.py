"""Inference engines by name, and which of them serve a model: the one place where that is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar
from weakref import WeakSet

from torch import nn

from heedful.attention.mechanisms import Mechanism
from heedful.errors import Refusal
from heedful.registry import Registry

Weights = Literal["float32", "float16"]  # as which matrices are packed on a CPU: as they are, or rounded


class Engine:
    """Engine: a fast way to run a model. Law: it answers, or learns, what the model does that is called as it is."""

    def refuses(self, model: nn.Module) -> str:
        """Why it does not serve a model, in one sentence that names the cure; nothing where it does."""
        raise NotImplementedError


class InferenceEngine(Engine):
    """Inference engine: parts of its own stand in the places of some of a model's while that answers."""

    def runner(self, model: Model) -> Model:
        """A tree with the engine's parts that shares all parameters of the model, which stays as it is."""
        raise NotImplementedError

    def refresh(self, parts: Sequence[nn.Module]) -> None:
        """Has the parts of a runner know their parameters as they are now, after somebody may have learned."""
        raise NotImplementedError


ENGINES: Registry[type[Engine]] = Registry(
    "engine",
    "heedful.engines",
    {
        "prepacked": "heedful.engines.prepacked:Prepacked",
        "float16": "heedful.engines.prepacked:Halved",
        "fused_block": "heedful.engines.fused_block:FusedBlocks",
        "decode_kernel": "heedful.engines.decode_kernel:DecodeKernel",
        "decode_graphs": "heedful.engines.decode_graphs:DecodeGraphs",
        "cuda_graphs": "heedful.engines.cuda_graphs:CudaGraphs",
        "compiled": "heedful.engines.training_engines:Compiled",
    },
)
RUNNERS: WeakSet[nn.Module] = WeakSet()  # models that engines run already


def choose(model: nn.Module, weights: Weights = "float32") -> list[str]:
    """Engine selection: those that serve a model as it answers, each over those before it.

    Rounded weights must be asked for, and are refused where they cannot be had; the others serve where they can. Steps
    are captured where a search asks for that, and they alone ask for the decode kernel. Who learns: `Learning.of`.
    """
    packs = "prepacked" if weights == "float32" else weights
    why = {name: ENGINES.named(name)().refuses(model) for name in (packs, "fused_block")}
    if weights != "float32" and why[packs]:
        raise Refusal(why[packs])
    return [name for name, refusal in why.items() if not refusal]


def runner(model: Model, weights: Weights = "float32") -> Model:
    """The model as those engines run it that are `chosen`; the model itself where none serves it, or some do."""
    if model in RUNNERS:
        return model
    for name in choose(model, weights):
        model = inference(name).runner(model)
        RUNNERS.add(model)
    return model


def inference(name: str) -> InferenceEngine:
    """The inference engine of a name."""
    engine = ENGINES.named(name)()
    assert isinstance(engine, InferenceEngine), f"{name} puts no parts into a model"
    return engine


def refresh(parts: Sequence[nn.Module]) -> None:
    """Has all parts of a runner know the parameters as they are now, after somebody may have learned."""
    for name in ("prepacked", "fused_block"):
        inference(name).refresh(parts)


def refusals(model: nn.Module) -> dict[str, str]:
    """Why each engine does not serve a model, by name; nothing for those that do."""
    return {name: ENGINES.named(name)().refuses(model) for name in ENGINES}


Model = TypeVar("Model", bound=nn.Module)


def shallow_copy(part: Model, kind: type[nn.Module] | None = None) -> Model:
    """A shallow copy of a module, of another class where one is given: parameters, buffers and hooks are shared."""
    made: Model = object.__new__(kind or type(part))  # type: ignore[assignment]
    vars(made).update(vars(part))
    vars(made)["_modules"] = dict(part._modules)
    return made


def beside(model: Model, other: Callable[[nn.Module], nn.Module | None]) -> Model:
    """The model with others in the places of some parts, whom `other` names. What holds none of them is shared.

    A mechanism is never another one: it owns what is remembered of it, and whoever looks listens to it.
    """
    made: dict[nn.Module, nn.Module] = {}

    def visit(part: nn.Module) -> nn.Module:
        if part not in made:
            swapped = part if isinstance(part, Mechanism) else other(part)
            made[part] = within(part) if swapped is None else swapped
        return made[part]

    def within(part: nn.Module) -> nn.Module:
        children = {name: child if child is None else visit(child) for name, child in part._modules.items()}
        if all(child is part._modules[name] for name, child in children.items()):
            return part
        whole = shallow_copy(part)
        whole._modules.update(children)
        return whole

    return visit(model)  # type: ignore[return-value]
