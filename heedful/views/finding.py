"""Views and findings: what is shown of a model and its answers, as sections of a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from heedful.looking.page import Figures, Samples, Section


@dataclass(frozen=True)
class Finding:
    """What a view shows of a model, in figures, and which layer and head shows it best."""

    figures: Figures
    layer: str
    head: str  # a number, or "mean" of the layer's heads
    more: tuple[Section, ...] = ()  # of a report, beside the figures


View = Callable[[nn.Module, Sequence[Any], Any, Any], Finding | None]  # a model, samples, results, what was learned
Table = Callable[[Sequence[Any], Any, Any], Samples]  # samples, results, what was learned
