"""Callbacks (loggers): who hears what a run comes to, step by step."""

from __future__ import annotations

from typing import Any

from heedful.looking.page import Samples


class Callback:
    """Callback of a run: any of these may be overridden, and the others hear nothing."""

    def on_begin(self, run: dict[str, Any]) -> None:
        """Hears the whole spec of a run, before its first step or where it goes on."""

    def on_log(self, step: int, values: dict[str, float]) -> None:
        """Hears what training came to at a step: the loss, each of several losses, the rate, samples a second."""

    def on_evaluate(self, step: int, split: str, scores: dict[str, float]) -> None:
        """Hears the scores of an evaluation, of the split `valid` or, at the end, `test`."""

    def on_samples(self, step: int, samples: Samples) -> None:
        """Hears of samples with the model's answers, where a task shows some at its evaluations."""

    def on_end(self, result: dict[str, Any]) -> None:
        """Hears the result of a finished run."""
