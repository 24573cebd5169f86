"""Writing token by token: at every step each target gets one more, however that one is chosen."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from heedful.decoding.generated_answer import Answer
from heedful.decoding.steps import Steps

# The log-probabilities of the next tokens (B V), the place of each target among all, and the step -> tokens (B).
Choose = Callable[[Tensor, Tensor, int], Tensor]


def likeliest(chances: Tensor, going: Tensor, step: int) -> Tensor:
    """The likeliest token of each target, of equals the first."""
    return chances.max(-1).indices


def write(steps: Steps, choose: Choose, limit: Tensor) -> list[Answer]:
    """The answer of every target, in their order: until END, or as many tokens as its source's limit (B) says.

    What is finished leaves the batch.
    """
    answers: dict[int, Answer] = {}
    going = torch.arange(len(steps), device=limit.device)
    scores, limit, count = torch.zeros(len(steps), device=limit.device), limit[steps.sources], len(steps)
    while len(steps):
        chances = steps.chances()
        tokens = choose(chances, going, steps.length)
        scores = scores + chances.gather(1, tokens[:, None]).squeeze(1)
        steps.write(tokens)
        ends = steps.ended() | (limit <= steps.length)
        if ends.any():
            wrote = going[ends].tolist(), steps.answers(ends).tolist(), scores[ends].tolist()
            answers |= {place: Answer.of(said, score, steps.ends) for place, said, score in zip(*wrote, strict=True)}
            steps.take((~ends).nonzero().flatten())
            scores, going, limit = scores[~ends], going[~ends], limit[~ends]
    return [answers[place] for place in range(count)]
