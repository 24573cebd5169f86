"""Sampling: each token is drawn by chance, as likely as the model holds it to be, or is given out as it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.attention import Memory
from heedful.decoding.answer import Answer
from heedful.decoding.cuts import Cuts
from heedful.decoding.dice import Dice
from heedful.decoding.steps import ROOM, Steps, Writer, answering, limits
from heedful.errors import Refusal

if TYPE_CHECKING:
    from heedful.decoding.spec import Decoding

Choose = Callable[[Tensor, int], Tensor]  # the log-probabilities of the next tokens (B V) and the step -> tokens (B)


def sample(
    model: Writer,
    source: Tensor,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    max_new_tokens: int | None = None,
    seed: int = 0,
    best: int = 1,
    *,
    numbers: Sequence[int] | None = None,
    remember: bool = True,
) -> list[list[Answer]]:
    """`best` answers for each source (B S, padded at the end), drawn token by token and each by itself.

    The chances are taken over the temperature and then cut: to the `top_k` likeliest (0: all), to the likeliest that
    together have `top_p`, to those with at least `min_p` of the likeliest one's chance. Scores are the model's own,
    before that. What is drawn follows from the seed, the number of the source (its place, where `numbers` does not say)
    and which draw it is, so that a source is answered alike in every batch. Answers end as those of `greedy` do.
    """
    answers: dict[int, Answer] = {}
    cut, limit = Cuts(temperature, top_k, top_p, min_p), limits(model, source, max_new_tokens)
    dice, end = Dice(seed, range(len(source)) if numbers is None else numbers, best), model.special.end
    with answering(model):
        steps = Steps(model, source, Memory(ROOM) if remember else None)
        steps.take(steps.sources.repeat_interleave(best))
        scores, going = torch.zeros(len(steps), device=source.device), torch.arange(len(steps), device=source.device)
        while len(steps):
            chances = steps.chances()
            tokens = drawn(cut(chances), dice.throw(going.tolist(), steps.length))
            scores = scores + chances.gather(1, tokens[:, None]).squeeze(1)
            steps.write(tokens)
            ends = (tokens == end) | (limit[steps.sources] <= steps.length)
            if ends.any():
                wrote = (going[ends].tolist(), steps.written[ends, 1:].tolist(), scores[ends].tolist())
                answers |= {place: Answer.of(tokens, score, end) for place, tokens, score in zip(*wrote, strict=True)}
                steps.take((~ends).nonzero().flatten())
                scores, going = scores[~ends], going[~ends]
    return [[answers[at * best + draw] for draw in range(best)] for at in range(len(source))]


def drawn(scores: Tensor, throws: Tensor) -> Tensor:
    """The tokens (B) at which the summed chances of these scores (B V) pass the throws (B), each in [0, 1)."""
    summed = scores.softmax(-1).cumsum(-1, dtype=torch.float64)
    throws = throws.to(summed.device)[:, None] * summed[:, -1:]  # a sum may miss 1 by a rounding
    return torch.searchsorted(summed, throws, right=True).squeeze(1)  # right: what has no chance is passed over


def stream(model: Writer, source: Tensor, decoding: Decoding, seed: int = 0, number: int = 0) -> Iterator[int]:
    """The tokens of the answer to one source (1 S) as they are written, without END: what `search` finds for it."""
    return follow(model, source, decoding, seed, number, stop_at_end=True)


def follow(
    model: Writer, source: Tensor, decoding: Decoding, seed: int, number: int, *, stop_at_end: bool
) -> Iterator[int]:
    """As `stream`, and where it is not to stop at END, END is a token as any other and only the limit ends it."""
    if decoding.beams > 1:
        raise Refusal(f"what {decoding.beams} beams find is known at the end, so it cannot be streamed; give beams=1")
    if len(source) != 1:
        raise Refusal(f"{len(source)} sources cannot be streamed at once; give one")
    [limit] = limits(model, source, decoding.max_new_tokens).tolist()
    return _follow(model, source, chooser(decoding, seed, number), limit, stop_at_end)


def _follow(model: Writer, source: Tensor, choose: Choose, limit: int, stop_at_end: bool) -> Iterator[int]:
    steps = None
    for step in range(limit):
        with answering(model):  # and not around the yield: who reads the tokens may train meanwhile
            steps = steps or Steps(model, source, Memory(ROOM))
            tokens = choose(steps.chances(), step)
            steps.write(tokens)
        token = int(tokens)
        if token == model.special.end and stop_at_end:
            return
        yield token


def chooser(decoding: Decoding, seed: int, number: int) -> Choose:
    """How the next token of one answer is chosen: the likeliest, or by dice where there is a temperature."""
    if not decoding.temperature:
        return lambda chances, step: chances.max(-1).indices
    cut, dice = decoding.cuts, Dice(seed, [number])
    return lambda chances, step: drawn(cut(chances), dice.throw([0], step))
