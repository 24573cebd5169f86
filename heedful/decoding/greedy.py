"""Greedy search: the likeliest token at every step."""

from __future__ import annotations

from torch import Tensor

from heedful.attention import Memory
from heedful.decoding.answer import Answer
from heedful.decoding.rules import FREE, Rules
from heedful.decoding.steps import ROOM, opened, searching
from heedful.decoding.writers import Writer, limits
from heedful.decoding.writing import likeliest, write


def greedy(
    model: Writer, source: Tensor, max_new_tokens: int | None = None, *, rules: Rules = FREE, remember: bool = True
) -> list[Answer]:
    """One answer for each source: at every step the likeliest token, of equals the first.

    Sources (B S) are padded at the end; prompts to go on with have -1 where there is no token. An answer ends at END,
    or is cut after `max_new_tokens` steps: 50 more than its own source has tokens where that is not given, and never
    more than the positions a model has learned. What is finished leaves the batch.
    """
    limit = limits(model, source, max_new_tokens)
    with searching(model):
        return write(opened(model, source, Memory(ROOM) if remember else None, rules), likeliest, limit)
