"""Sampling: each token is drawn by chance, as likely as the model holds it to be, or is given out as it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.decoding.dice import Dice
from heedful.decoding.generated_answer import Answer
from heedful.decoding.greedy import likeliest
from heedful.decoding.logits_rules import FREE, Rules
from heedful.decoding.steps import Choose, Steps, answering, begin, limits, quiet, write
from heedful.decoding.truncation import Cuts
from heedful.engines import refresh, runner
from heedful.errors import Refusal
from heedful.models.numerics import exact
from heedful.models.writer import Beginning, Writer

if TYPE_CHECKING:
    from heedful.decoding.search_spec import Decoding


def sample(
    model: Writer,
    context: Beginning,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    max_new_tokens: int | None = None,
    seed: int = 0,
    best: int = 1,
    *,
    numbers: Sequence[int] | None = None,
    rules: Rules = FREE,
    remember: bool = True,
) -> list[list[Answer]]:
    """`best` answers for each source (see `greedy`), drawn token by token and each by itself.

    The chances are taken over the temperature and then cut: to the `top_k` likeliest (0: all), to the likeliest that
    together have `top_p`, to those with at least `min_p` of the likeliest one's chance. Scores are the model's own,
    before that. What is drawn follows from the seed, the number of the source (its place, where `numbers` does not say)
    and which draw it is, so that a source is answered alike in every batch. Answers end as those of `greedy` do.
    """
    cut, limit = Cuts(temperature, top_k, top_p, min_p), limits(model, context, max_new_tokens)
    many = len(limit)
    dice = Dice(seed, range(many) if numbers is None else numbers, best)
    with answering(model) as running:
        steps = Steps(running, context, running.memory() if remember else None, rules)
        steps.take(steps.sources.repeat_interleave(best))
        answers = write(steps, by_chance(cut, dice), limit)
    return [answers[at * best : (at + 1) * best] for at in range(many)]


def by_chance(cut: Cuts, dice: Dice) -> Choose:
    """Draws a token of each target by its own die."""
    return lambda chances, going, step: draw(cut(chances), dice.throw(going.tolist(), step))


def draw(scores: Tensor, throws: Tensor) -> Tensor:
    """The tokens (B) at which the summed chances of these scores (B V) pass the throws (B), each in [0, 1)."""
    summed = exact(scores.softmax(-1)).cumsum(-1)
    throws = throws.to(summed.device)[:, None] * summed[:, -1:]  # a sum may miss 1 by a rounding
    at = torch.searchsorted(summed, throws, right=True).squeeze(1)  # right: what has no chance is passed over
    return at.clamp(max=scores.shape[1] - 1).to(scores.device)  # where scores are no numbers, no place is


def stream(
    model: Writer,
    batch: Mapping[str, Tensor],
    decoding: Decoding,
    seed: int = 0,
    number: int = 0,
    rules: Rules | None = None,
) -> Iterator[int]:
    """The tokens of the answer to a batch of one as they are written, without END: what `search` finds for it."""
    if decoding.beams > 1:
        raise Refusal(f"what {decoding.beams} beams find is known at the end, so it cannot be streamed; give beams=1")
    running = runner(model, decoding.weights)
    context, rules = begin(running, batch), rules or decoding.rules
    if len(context.prompt) != 1:
        raise Refusal(f"{len(context.prompt)} sources cannot be streamed at once; give one")
    [limit] = limits(model, context, decoding.max_new_tokens).tolist()
    choose = by_chance(decoding.cuts, Dice(seed, [number])) if decoding.temperature else likeliest
    return _stream(Steps(running, context, running.memory(), rules), choose, limit)


def _stream(steps: Steps, choose: Choose, limit: int) -> Iterator[int]:
    going, parts = torch.zeros(1, dtype=torch.long), list(steps.model.modules())
    for step in range(limit):
        # and not around the yield: who reads the tokens may train meanwhile
        with quiet(steps.model):
            refresh(parts)
            tokens = choose(steps.chances(), going, step)
            steps.write(tokens)
            ended = bool(steps.ended())
        if int(tokens) in steps.ends:
            return
        yield int(tokens)
        if ended:
            return
