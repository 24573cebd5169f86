"""Search by captured steps: greedily or by chance on a GPU, and no waiting between two tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from heedful.decoding.dice import Dice
from heedful.decoding.generated_answer import Answer
from heedful.decoding.logits_rules import Rules
from heedful.decoding.sample import draw
from heedful.decoding.steps import answering, limits
from heedful.decoding.truncation import Cuts
from heedful.engines.decode_graphs import Step, step_of
from heedful.errors import Failure, Refusal
from heedful.models.writer import Writer

if TYPE_CHECKING:
    from heedful.decoding.search_spec import Decoding

PATIENCE = 16  # tokens that are written before it is asked whether all answers have ended


class Way(NamedTuple):
    """How a token is chosen on the device: the likeliest, or drawn where there are cuts."""

    cuts: Cuts | None
    repetition_penalty: float

    def weigh(self, scores: Tensor, text: Tensor) -> Tensor:
        """Scores as the penalty leaves them."""
        return scores if self.repetition_penalty == 1.0 else Rules(self.repetition_penalty).weigh(scores, text)

    def choose(self, chances: Tensor, throw: Callable[[], Tensor]) -> Tensor:
        """The tokens: B 1."""
        return chances.argmax(-1, keepdim=True) if self.cuts is None else draw(self.cuts(chances), throw())[:, None]


def search(
    model: Writer,
    batch: Mapping[str, Tensor],
    decoding: Decoding,
    best: int,
    seed: int,
    numbers: Sequence[int] | None,
    rules: Rules,
) -> list[list[Answer]]:
    """Greedy search or sampling by captured steps (CUDA graphs), with the dice of `search`."""
    check(model, batch, decoding, rules)
    context = model.begin(batch)  # which reads nothing yet
    many, device = len(context.prompt), context.prompt.device
    context = context.take(torch.arange(many, device=device).repeat_interleave(best))
    limit, prompts = limits(model, context, decoding.max_new_tokens).tolist(), context.prompt
    way = None if rules.repetition_penalty == 1.0 else Way(None, rules.repetition_penalty)
    throws = None
    if decoding.temperature:
        dice = Dice(seed, range(many) if numbers is None else numbers, best)
        throws = torch.stack([dice.throw(range(len(limit)), step) for step in range(max(limit))]).to(device)
        way = Way(decoding.cuts, rules.repetition_penalty)
    ends = (*(model.special.ends if rules.ends else ()), *rules.also)
    with answering(model):
        columns = prompts.shape[1] + max(limit)
        compiled = decoding.steps == "compiled"
        step = step_of(model, len(limit), columns, context.places is not None, compiled)
        step.begin(prompts, context.places, throws, way)
        answers = write(lambda at: step(at, way), step, prompts.shape[1], limit, ends)
    return [answers[at * best : (at + 1) * best] for at in range(many)]


def check(model: Writer, batch: Mapping[str, Tensor], decoding: Decoding, rules: Rules) -> None:
    """Refuses what cannot be captured."""
    asked = f"steps={decoding.steps!r}"
    if not all(read.is_cuda for read in batch.values()):
        raise Refusal(f"{asked} captures the steps of a GPU, and the model lies on a CPU; leave it out")
    if model.reads or decoding.beams > 1:
        raise Refusal(f"{asked} is for a decoder alone, without beams; leave it out")
    if rules.bans or rules.bias or rules.no_repeat_ngram or rules.stops:
        raise Refusal(f"{asked} goes without bans, bias, no_repeat_ngram and stop strings; leave it or them out")


def write(take: Callable[[int], None], step: Step, start: int, limit: list[int], ends: Sequence[int]) -> list[Answer]:
    """Every answer, of which the first token is chosen; only now and then it is asked whether all have ended."""
    for count in range(1, max(limit)):
        if ends and count % PATIENCE == 0:
            so_far = step.text[:, start : start + count].tolist()
            if all(most <= count or not set(ends).isdisjoint(row) for row, most in zip(so_far, limit, strict=True)):
                break
        take(start + count - 1)
    columns = slice(start, start + max(limit))
    rows = [until(row[:most], ends) for row, most in zip(step.text[:, columns].tolist(), limit, strict=True)]
    scores = [sum(gains[: len(row)]) for row, gains in zip(rows, step.gains[:, columns].tolist(), strict=True)]
    if any(score != score for score in scores):
        raise Failure("the model's scores are not numbers, so no token can be chosen; train it at a lower rate")
    return [Answer.of(row, score, ends) for row, score in zip(rows, scores, strict=True)]


def until(said: list[int], ends: Sequence[int]) -> list[int]:
    """The tokens up to the first end token, which is included."""
    return said[: next((at + 1 for at, token in enumerate(said) if token in ends), len(said))]
