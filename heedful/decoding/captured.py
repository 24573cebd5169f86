"""Steps as CUDA graphs: a decoder's step is captured once and replayed, and nobody waits for the GPU between two."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from heedful.attention.memory import FixedMemory
from heedful.decoding.answer import Answer
from heedful.decoding.dice import Dice
from heedful.decoding.rules import Rules
from heedful.decoding.sample import drawn
from heedful.decoding.steps import Continuing, answering
from heedful.decoding.writers import Speaker, Writer, limits, translates
from heedful.errors import Failure, Refusal

if TYPE_CHECKING:
    from heedful.decoding.spec import Decoding

ROUND = 64  # a memory's size is a multiple of it, so that prompts of like length share a graph
PATIENCE = 16  # tokens that are written before it is asked whether all answers have ended
WARM = 3  # steps before a capture, in which the libraries choose their kernels
TUNED = {"coordinate_descent_tuning": True}  # with it inductor reads a matrix for one row at the speed of the memory


class Step:
    """One step of a model over a memory of fixed shapes: the newest tokens (B 1) in, scores (B V) out, in their places.

    On a GPU it is captured when first taken; on a CPU it is called as it is, which is the proof of the other way.
    """

    def __init__(self, model: Speaker, batch: int, size: int, compiled: bool) -> None:
        self.model, self.memory, self.size = model, FixedMemory(size), size
        device = next(cast(nn.Module, model).parameters()).device
        self.newest = torch.zeros(batch, 1, dtype=torch.long, device=device)
        self.run: Callable[[], Tensor] = self.plain
        if compiled:
            self.run = torch.compile(self.plain, dynamic=False, options=cast(Any, TUNED) if batch == 1 else None)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.scores: Tensor | None = None

    def plain(self) -> Tensor:
        """The scores behind the newest tokens: B V."""
        return self.model(self.newest, self.memory)[:, -1]

    def __call__(self, tokens: Tensor) -> Tensor:
        """The scores behind these tokens (B 1), which are those behind the next ones when it is called again."""
        self.newest.copy_(tokens)
        if not self.newest.is_cuda:
            return self.run()
        if self.graph is None or self.scores is None:
            self.capture()
        assert self.graph is not None and self.scores is not None
        self.graph.replay()
        return self.scores

    def capture(self) -> None:
        """Takes a few steps aside, captures one, and leaves the memory as it was."""
        written = self.memory.written
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                self.run()
                self.memory.rewind(written)
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.scores = self.run()
        self.memory.rewind(written)


# Of each model its last step, and what it was made for. It goes with the model.
made: MutableMapping[Any, tuple[tuple[Any, ...], Step]] = WeakKeyDictionary()


def step_of(model: Speaker, batch: int, size: int, padded: bool, compiled: bool) -> Step:
    """The step of a model, taken before or made anew; the memory of it is empty."""
    weights = tuple(one.data_ptr() for one in cast(nn.Module, model).parameters())
    wanted = batch, size, padded, compiled, weights
    if model not in made or made[model][0] != wanted:
        made.pop(model, None)  # before there are two
        made[model] = wanted, Step(model, batch, size, compiled)
    step = made[model][1]
    step.memory.rewind(0)
    return step


class CapturedSteps(Continuing):
    """Prompts that are gone on with by a captured step; the prompts themselves are read as ever."""

    def __init__(self, model: Speaker, prompts: Tensor, new: int, rules: Rules, compiled: bool) -> None:
        super().__init__(model, prompts, None, rules)
        size = -(-(prompts.shape[1] + new) // ROUND) * ROUND
        self.step = step_of(model, len(prompts), size, self.positions is not None, compiled)
        self.memory = self.step.memory

    def scores(self) -> Tensor:
        return self.step(self.written[:, -1:]) if self.length else super().scores()

    def checked(self, chances: Tensor) -> None:
        """Nobody waits to see whether scores are numbers; who reads the answers looks at theirs."""


def search(
    model: Writer, source: Tensor, decoding: Decoding, best: int, seed: int, numbers: Sequence[int] | None, rules: Rules
) -> list[list[Answer]]:
    """What `search` finds greedily or by chance, by captured steps: the same dice, and no waiting between tokens."""
    check(model, source, decoding, rules)
    limit = limits(model, source, decoding.max_new_tokens).repeat_interleave(best)
    new, prompts = int(limit.max()), source.repeat_interleave(best, 0)
    choose = chooser(decoding, Dice(seed, range(len(source)) if numbers is None else numbers, best), new, source.device)
    with answering(model):
        steps = CapturedSteps(cast(Speaker, model), prompts, new, rules, decoding.steps == "compiled")
        answers = write_ahead(steps, choose, limit)
    return [answers[at * best : (at + 1) * best] for at in range(len(source))]


def check(model: Writer, source: Tensor, decoding: Decoding, rules: Rules) -> None:
    """Refuses what cannot be captured."""
    asked = f"steps={decoding.steps!r}"
    if not source.is_cuda:
        raise Refusal(f"{asked} captures the steps of a GPU, and the model lies on a CPU; leave it out")
    if translates(model) or decoding.beams > 1 or rules.stops is not None:
        raise Refusal(f"{asked} is for a decoder alone, without beams and stop strings; leave it out")


def chooser(decoding: Decoding, dice: Dice, new: int, device: torch.device) -> Callable[[Tensor, int], Tensor]:
    """How tokens are chosen on the device: the likeliest, or by throws that all lie there beforehand."""
    if not decoding.temperature:
        return lambda chances, step: chances.argmax(-1)
    going = range(len(dice.dice))
    throws = torch.stack([dice.throw(going, step) for step in range(new)]).to(device)
    cut = decoding.cuts
    return lambda chances, step: drawn(cut(chances), throws[step])


def write_ahead(steps: Continuing, choose: Callable[[Tensor, int], Tensor], limit: Tensor) -> list[Answer]:
    """The answer of every target (see `write`). Only now and then it is asked whether all have come to their end."""
    ends = limit.new_tensor(steps.ends)
    scores = torch.zeros(len(limit), device=limit.device)
    done = torch.zeros_like(limit, dtype=torch.bool)
    for step in range(int(limit.max())):
        chances = steps.chances()
        tokens = choose(chances, step)
        gains = chances.gather(1, tokens[:, None]).squeeze(1)
        scores = torch.where(done, scores, scores + gains)
        steps.write(tokens)
        done = done | (tokens[:, None] == ends).any(1) | (limit <= step + 1)
        if (step + 1) % PATIENCE == 0 and bool(done.all()):
            break
    if scores.isnan().any():
        raise Failure("the model's scores are not numbers, so no token can be chosen; train it at a lower rate")
    rows = zip(steps.written[:, steps.begun :].tolist(), limit.tolist(), scores.tolist(), strict=True)
    return [Answer.of(until(said[:most], steps.ends), score, steps.ends) for said, most, score in rows]


def until(said: list[int], ends: Sequence[int]) -> list[int]:
    """What was said up to and with the first of the ends."""
    return said[: next((at + 1 for at, token in enumerate(said) if token in ends), len(said))]
