"""Scores as people read them: shares in percent, and what a name does not say; their metrics know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heedful.metrics.metric import Metric


def metric_of(name: str, metrics: Sequence[Metric[Any]]) -> Metric[Any] | None:
    """The metric that a score is of: the one that names it, or one whose names depend on the data."""
    named = (one for one in metrics if name in one.names)
    return next(named, next((one for one in metrics if not one.names), None))


def is_share(name: str, metrics: Sequence[Metric[Any]]) -> bool:
    """Whether a score is a share of something."""
    found = metric_of(name, metrics)
    return found is not None and found.share


def score_text(name: str, value: float, metrics: Sequence[Metric[Any]]) -> str:
    """A score's value: shares in percent."""
    return f"{100 * value:.2f} %" if is_share(name, metrics) else f"{value:.2f}"


def meaning(name: str, metrics: Sequence[Metric[Any]]) -> str:
    """What a score's name does not say; nothing where it says all."""
    found = metric_of(name, metrics)
    return "" if found is None else found.meaning
