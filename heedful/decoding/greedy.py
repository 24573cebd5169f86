"""Greedy search: the likeliest token at every step."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention import Memory
from heedful.decoding.answer import Answer
from heedful.decoding.steps import ROOM, Steps, Writer, limits, searching


def greedy(model: Writer, source: Tensor, max_new_tokens: int | None = None, *, remember: bool = True) -> list[Answer]:
    """One answer for each source (B S, padded at the end): at every step the likeliest token, of equals the first.

    An answer ends at END, or is cut after `max_new_tokens` steps: 50 more than its own source has tokens where that is
    not given, and never more than the positions a model has learned. What is finished leaves the batch.
    """
    answers: dict[int, Answer] = {}
    limit, end = limits(model, source, max_new_tokens), model.special.end
    with searching(model):
        steps = Steps(model, source, Memory(ROOM) if remember else None)
        scores = torch.zeros(len(steps), device=source.device)
        while len(steps):
            gains, tokens = steps.chances().max(-1)
            scores = scores + gains
            steps.write(tokens)
            ends = (tokens == end) | (limit[steps.sources] <= steps.length)
            if ends.any():
                wrote = (steps.sources[ends].tolist(), steps.written[ends, 1:].tolist(), scores[ends].tolist())
                answers |= {index: Answer.of(tokens, score, end) for index, tokens, score in zip(*wrote, strict=True)}
                steps.take((~ends).nonzero().flatten())
                scores = scores[~ends]
    return [answers[index] for index in range(len(source))]
