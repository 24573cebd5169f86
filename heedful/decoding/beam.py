"""Beam search: the likeliest answers among those that a few open beginnings lead to."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.attention.kv_cache_tree import TreeMemory
from heedful.decoding.generated_answer import Answer, penalty
from heedful.decoding.logits_rules import FREE, Rules
from heedful.decoding.steps import BranchingSteps, Steps, limits, searching
from heedful.errors import Refusal
from heedful.models.writer import Beginning, Writer


def beam(
    model: Writer,
    context: Beginning,
    beams: int = 5,
    best: int = 1,
    max_new_tokens: int | None = None,
    length_penalty: float = 0.0,
    *,
    rules: Rules = FREE,
    remember: bool = True,
) -> list[list[Answer]]:
    """The `best` answers for each source (see `greedy`), best first, found with `beams` open beginnings.

    Answers are compared by score / ((5 + length) / 6)^length_penalty, END counted (GNMT: Wu et al., 2016): 0 compares
    the scores themselves and favours short answers, 0.6 is the choice of Vaswani et al. (2017). An answer is finished
    where END is among the `beams` likeliest ways to go on, and a source when nothing open can come among its best. What
    is cut at `max_new_tokens` (see `greedy`) follows what is finished. One beam without a penalty is greedy search.
    """
    if not 1 <= best <= beams:
        raise Refusal(f"{beams} beams cannot give the {best} best answers; give as many beams as answers, 1 or more")
    found = [Found(best, length_penalty, limit) for limit in limits(model, context, max_new_tokens).tolist()]
    with searching(model) as running:
        steps = open_steps(running, context, beams, rules, remember)
        scores = torch.zeros(len(steps), 1, device=context.prompt.device)  # B K
        while len(steps):
            scores = step(steps, scores, beams, found)
    return [one.answers for one in found]


def open_steps(model: Writer, context: Beginning, beams: int, rules: Rules, remember: bool) -> Steps:
    """The beams of a source as rows of one forward where the model allows it, and else each as a target of its own."""
    memory = model.memory(beams if context.prompt.shape[1] == 1 else 1) if remember else None
    if isinstance(memory, TreeMemory):
        return BranchingSteps(model, context, memory, rules)
    return Steps(model, context, memory, rules)


def step(steps: Steps, scores: Tensor, beams: int, found: list[Found]) -> Tensor:
    """Every open target (B K) goes on in the `beams` likeliest ways, and what ends is found. Returns the new scores."""
    chances, width, ends = steps.chances(), scores.shape[1], steps.ends
    vocab = chances.shape[-1]
    count = min((1 + max(1, len(ends))) * beams, width * vocab)  # each of `width` may end in so many ways: enough go on
    wide = min(beams, count - width * len(ends))
    scores, ways = top((scores.unsqueeze(-1) + chances.unflatten(0, scores.shape)).flatten(1), count)  # B N
    going: list[Way] = []
    rows = zip(steps.sources[::width].tolist(), scores.tolist(), ways.tolist(), strict=True)
    for place, (index, values, chosen) in enumerate(rows):
        one, length = found[index], steps.length + 1
        ahead = [Way(v, place * width + way // vocab, way % vocab) for v, way in zip(values, chosen, strict=True)]
        for rank, way in enumerate(ahead):
            if (rank < beams if way.token in ends else length == one.limit) and way.score > -math.inf:
                one.add(Answer.of([*steps.written[way.parent, steps.begun :].tolist(), way.token], way.score, ends))
        onward = [way for way in ahead if way.token not in ends][:wide]
        if one.open(onward[0].score, length):
            going += onward
    shape = len(going) // wide, wide
    steps.take(ways.new_tensor([way.parent for way in going]).view(shape))
    steps.write(ways.new_tensor([way.token for way in going]))
    return scores.new_tensor([way.score for way in going]).view(shape)


class Way(NamedTuple):
    """One way to go on: what it scores, which target it goes on from, and with what token."""

    score: float
    parent: int
    token: int


def top(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest of each row and where they stand, highest first; among equals the first, unlike `topk`."""
    values, index = x.topk(min(count + 1, x.shape[1]))
    if (values[:, count - 1 : count] == values[:, count:]).any():  # as high as the last, and topk took any of them
        values, index = x.sort(dim=-1, descending=True, stable=True)
        return values[:, :count], index[:, :count]
    index = index[:, :count].sort(-1).values
    values, order = x.gather(1, index).sort(dim=-1, descending=True, stable=True)
    return values, index.gather(1, order)


class Found:
    """The best answers of one source so far: finished ones first, then by rank; among equals, the one found first."""

    def __init__(self, best: int, length_penalty: float, limit: int) -> None:
        self.best, self.length_penalty, self.limit = best, length_penalty, limit
        self.answers: list[Answer] = []

    def add(self, answer: Answer) -> None:
        """Takes an answer in, where it is among the best."""
        order = sorted([*self.answers, answer], key=lambda one: (not one.finished, -one.ranked(self.length_penalty)))
        self.answers = order[: self.best]

    def open(self, score: float, length: int) -> bool:
        """Whether a target of `length` tokens and this score could, ended later, still come among the best.

        A score can only fall, so that the most it can come to is itself over the largest penalty of the ends to come.
        """
        if length >= self.limit:
            return False
        most = score / max(penalty(length + 1, self.length_penalty), penalty(self.limit, self.length_penalty))
        return most > (self.answers[-1].ranked(self.length_penalty) if len(self.answers) == self.best else -math.inf)
