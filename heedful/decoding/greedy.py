"""Greedy search: the likeliest token at every step."""

from __future__ import annotations

from torch import Tensor

from heedful.decoding.generated_answer import Answer
from heedful.decoding.logits_rules import FREE, Rules
from heedful.decoding.steps import Steps, limits, searching, write
from heedful.models.writer import Beginning, Writer


def greedy(
    model: Writer, context: Beginning, max_new_tokens: int | None = None, *, rules: Rules = FREE, remember: bool = True
) -> list[Answer]:
    """One answer to each row of a context (see `begin`): at every step the likeliest token, of equals the first.

    An answer ends at END, or is cut after `max_new_tokens` steps: 50 more than its own source has tokens where that is
    not given, and never more than the positions a model has learned. What is finished leaves the batch.
    """
    limit = limits(model, context, max_new_tokens)
    with searching(model) as running:
        return write(Steps(running, context, running.memory() if remember else None, rules), likeliest, limit)


def likeliest(chances: Tensor, going: Tensor, step: int) -> Tensor:
    """The likeliest token of each target, of equals the first."""
    return chances.max(-1).indices
