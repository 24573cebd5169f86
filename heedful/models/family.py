"""What a family of models declares of itself, in its own file, and what its models have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from heedful.models.specs import Spec
from heedful.registry import import_part

if TYPE_CHECKING:
    from heedful.models.cases import Cases


def itself(spec: Any) -> dict[str, Any]:
    """A trained model begins others of its own family."""
    return {"family": spec.family}


def nothing(model: Any) -> Iterable[nn.Module]:
    """A trained model gives others no part but itself."""
    return ()


@dataclass(frozen=True)
class Family:
    """A model family: its spec, its model, how the laws are measured on it, and what a trained one becomes."""

    spec: type[Spec]
    model: type[nn.Module]
    toy: Mapping[str, Any]  # what a small one must be told beside its sizes
    measured: str | type[Cases]  # its cases: the class, or its place, "module:class", which a run need not import
    tasks: tuple[str, ...] = ()  # that it learns, beside those whose records name it
    reading: type[nn.Module] | None = None  # in place of a model that writes, where it is asked something else
    becomes: Callable[[Any], dict[str, Any]] = itself  # what a classifier that begins with a trained one is told
    gives: Callable[[Any], Iterable[nn.Module]] = nothing  # models within a trained one that parts of others begin with

    @property
    def cases(self) -> type[Cases]:
        """Inputs for its models, and how each law is measured on them."""
        return import_part(self.measured) if isinstance(self.measured, str) else self.measured


class Model(nn.Module):
    """Model: a torch module that was made of a spec, which a notebook shows with its parts and their weights."""

    def _repr_html_(self) -> str:
        from heedful.looking import notebook

        spec: Any = self.spec
        told = [(key, str(value)) for key, value in spec.model_dump(exclude_defaults=True).items() if key != "family"]
        parts = [(name, f"{type(part).__name__}, {count_weights(part)}") for name, part in self.named_children()]
        title = f"{spec.family}, {count_weights(self)}"
        return notebook.table(title, told) + notebook.table("parts", parts)


def count_weights(module: nn.Module) -> str:
    """How many weights a module has, and how many of them learn, in words."""
    every = sum(one.numel() for one in module.parameters())
    learn = sum(one.numel() for one in module.parameters() if one.requires_grad)
    return f"{every:,} weights" + (f", {learn:,} of them learn" if learn < every else "")
