"""Views and findings: what is shown of a model and its answers, as sections of a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import nn

from heedful.attention import Attention
from heedful.looking.page import Figures, Samples, Section


@dataclass(frozen=True)
class Finding:
    """A finding: what a view shows of a model in figures, and the layer and head that show it best."""

    figures: Figures
    layer: str
    head: str  # a number, or "mean" of the layer's heads
    more: tuple[Section, ...] = ()  # of a report, beside the figures


class Deferred(Sequence[Any]):
    """Results that are made when a view first asks for one: a search takes long, and few views need what it finds."""

    def __init__(self, make: Callable[[], Sequence[Any]]) -> None:
        self.make = make

    @cached_property
    def made(self) -> Sequence[Any]:
        """All of them."""
        return self.make()

    def __getitem__(self, at: Any) -> Any:
        return self.made[at]

    def __len__(self) -> int:
        return len(self.made)


View = Callable[[nn.Module, Sequence[Any], Any, Any], Finding | None]  # a model, samples, results, what was learned
Table = Callable[[Sequence[Any], Any, Any], Samples]  # samples, results, what was learned


def last_attention(model: nn.Module) -> str:
    """The path of the last attention, whose weights are shown where no other one says more."""
    return ([""] + [path for path, part in model.named_modules() if isinstance(part, Attention)])[-1]
