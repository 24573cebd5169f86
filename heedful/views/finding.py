"""Findings: what a view shows of a model, as sections of a page, and which head shows it best."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.looking.page import Figures, Section


@dataclass(frozen=True)
class Finding:
    """What the attention of a model shows, in figures, and which layer and head shows it best."""

    figures: Figures
    layer: str
    head: str  # a number, or "mean" of the layer's heads
    more: tuple[Section, ...] = ()  # of a report, beside the figures
