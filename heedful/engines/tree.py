"""Module trees that stand beside a model: some parts are others, all parameters are the model's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import nn

from heedful.attention.mechanisms import Mechanism

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
