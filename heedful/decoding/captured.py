"""Steps as CUDA graphs: a decoder's step is captured once and replayed, and nobody waits for the GPU between two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from heedful.attention import newest
from heedful.attention.kv_cache import FixedMemory
from heedful.decoding.dice import Dice
from heedful.decoding.generated_answer import Answer
from heedful.decoding.logits_rules import Rules
from heedful.decoding.sample import drawn
from heedful.decoding.steps import answering, limits
from heedful.decoding.truncation import Cuts
from heedful.errors import Failure, Refusal
from heedful.models.writer import Writer
from heedful.outputs import Rounded

if TYPE_CHECKING:
    from heedful.decoding.search_spec import Decoding
    from heedful.models.text.gpt import GPT

LEAST = 64  # columns that a step looks at; twice as many where they do not do, and again
PATIENCE = 16  # tokens that are written before it is asked whether all answers have ended
WARM = 3  # steps before a capture, in which the libraries choose their kernels
EARLY = {"triton.enable_pdl": True}  # a kernel is begun beside the end of the one before, from NVIDIA's Hopper on
TUNED = {
    "coordinate_descent_tuning": True,  # with it inductor reads a matrix for one row at the speed of the memory
    "realize_opcount_threshold": 6,  # and what it is multiplied with is made once, not anew for each of its columns
}


class Way(NamedTuple):
    """How a token is chosen on the device: the likeliest, or drawn where there are cuts."""

    cuts: Cuts | None
    repetition_penalty: float


LIKELIEST = Way(None, 1.0)


class Step:
    """One step of a model, in places that never change: the newest tokens are read and the next ones chosen.

    `text` (B S) are the tokens of all columns, of which the last is newest and not yet read, `gains` their
    log-probabilities and `throws` the numbers they are drawn by. On a GPU a step is captured when first taken; on a CPU
    it is called as it is, which is the proof of the other way.
    """

    def __init__(self, model: GPT, batch: int, size: int, compiled: bool) -> None:
        weight = next(model.parameters())
        self.memory, self.outputs = FixedMemory(size), Rounded(cast(Any, model.outputs))  # not the model, which may go
        newest.prepare(model, self.memory)
        self.newest = torch.zeros(batch, 1, dtype=torch.long, device=weight.device)
        self.text = torch.full((batch, size), -1, device=weight.device)
        self.gains = torch.zeros(batch, size, dtype=torch.float64, device=weight.device)
        self.throws = torch.zeros(size, batch, dtype=torch.float64, device=weight.device)
        self.scores, self.likeliest = self.plain, self.greedy
        if compiled:
            # Every batch and reach is a graph of its own: past torch's limit of 8 it would go on eagerly, in silence.
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 64)
            how: Any = {"dynamic": False, "options": EARLY | (TUNED if batch == 1 else {})}
            self.scores, self.likeliest = torch.compile(self.plain, **how), torch.compile(self.greedy, **how)
        self.graphs: dict[tuple[int, Way], torch.cuda.CUDAGraph] = {}

    def plain(self, model: GPT) -> Tensor:
        """The scores behind the newest tokens: B V."""
        return self.outputs(model.read(self.newest, self.memory)[:, -1])

    def greedy(self, model: GPT) -> tuple[Tensor, Tensor]:
        """The likeliest tokens behind the newest ones, and their log-probabilities: B 1 both."""
        return self.chosen(self.plain(model), LIKELIEST)

    def begin(self, model: GPT, prompts: Tensor, positions: Tensor | None, throws: Tensor | None, way: Way) -> None:
        """Reads prompts (B P) and chooses their first tokens; what was there before is forgotten."""
        start = prompts.shape[1]
        self.rewind(0)
        self.outputs.refresh()
        self.text[:, :start] = prompts
        if throws is not None:
            self.throws[start : start + len(throws)] = throws
        self.memory.reach = start
        states = model.read(prompts.clamp(min=0), self.memory, positions)
        self.write(*self.chosen(self.outputs(states[:, -1]), way))

    def take(self, model: GPT, way: Way) -> None:
        """Reads the newest tokens and writes the next ones. Dice are thrown outside of what is compiled."""
        self.write(*(self.likeliest(model) if way == LIKELIEST else self.chosen(self.scores(model), way)))

    def chosen(self, scores: Tensor, way: Way) -> tuple[Tensor, Tensor]:
        """The next tokens by scores (B V), and their log-probabilities: B 1 both."""
        if way.repetition_penalty != 1.0:
            scores = Rules(way.repetition_penalty).weigh(scores, self.text)
        chances = scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        if way.cuts is None:
            tokens = chances.argmax(-1, keepdim=True)
        else:
            tokens = drawn(way.cuts(chances), self.throws.index_select(0, self.place)[0])[:, None]
        return tokens, chances.gather(1, tokens).double()

    @property
    def place(self) -> Tensor:
        """The column behind all that was read."""
        assert self.memory.length is not None
        return self.memory.length[None]

    def write(self, tokens: Tensor, gains: Tensor) -> None:
        """Writes down what was chosen."""
        self.text.index_copy_(1, self.place, tokens)
        self.gains.index_copy_(1, self.place, gains)
        self.newest.copy_(tokens)

    def __call__(self, model: GPT, column: int, way: Way) -> None:
        """Takes the step that reads the tokens at this column."""
        self.memory.reach = reach(column + 1, self.memory.size) if self.memory.asked else self.memory.size
        if not self.newest.is_cuda:
            return self.take(model, way)
        key = self.memory.reach, way
        if key not in self.graphs:
            self.graphs[key] = self.captured(model, column, way)
        self.graphs[key].replay()

    def captured(self, model: GPT, column: int, way: Way) -> torch.cuda.CUDAGraph:
        """Takes a few steps aside, captures one, and leaves everything as it was."""
        newest, aside = self.newest.clone(), torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                self.take(model, way)
                self.rewind(column)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool()):
            self.take(model, way)
        self.rewind(column)
        self.newest.copy_(newest)
        return graph

    def rewind(self, column: int) -> None:
        """Forgets what was read from this column on, and what was written behind it."""
        self.memory.rewind(column)
        self.text[:, column + 1 :] = -1


@cache
def pool() -> Any:
    """The memory of all graphs, which take turns. cuBLAS keeps its workspace there too, and so it outlives a step."""
    return torch.cuda.graph_pool_handle()


def reach(columns: int, size: int) -> int:
    """How many columns a step looks at that has so many before it: a graph for each power of two, and for all."""
    most = LEAST
    while most < columns:
        most *= 2
    return min(most, size)


# Of each model its last step, plain and compiled, and what it was made for. They go with the model.
made: MutableMapping[Any, dict[bool, tuple[tuple[Any, ...], Step]]] = WeakKeyDictionary()


def step_of(model: GPT, batch: int, size: int, padded: bool, compiled: bool) -> Step:
    """The step of a model, taken before or made anew where anything lies elsewhere now."""
    weights = tuple(one.data_ptr() for one in model.parameters())
    wanted, steps = (batch, size, padded, weights), made.setdefault(model, {})
    if compiled not in steps or steps[compiled][0] != wanted:
        steps.pop(compiled, None)  # before there are two
        steps[compiled] = wanted, Step(model, batch, size, compiled)
    return steps[compiled][1]


def search(
    writer: Writer,
    batch: Mapping[str, Tensor],
    decoding: Decoding,
    best: int,
    seed: int,
    numbers: Sequence[int] | None,
    rules: Rules,
) -> list[list[Answer]]:
    """What `search` finds greedily or by chance, by captured steps: the same dice, and no waiting between tokens."""
    check(writer, batch, decoding, rules)
    model, context = cast("GPT", writer), writer.begin(batch)  # reads nothing yet
    many, device = len(context.prompt), context.prompt.device
    context = context.take(torch.arange(many, device=device).repeat_interleave(best))
    limit, prompts = limits(model, context, decoding.max_new_tokens).tolist(), context.prompt
    way, throws = Way(None, rules.repetition_penalty), None
    if decoding.temperature:
        dice = Dice(seed, range(many) if numbers is None else numbers, best)
        throws = torch.stack([dice.throw(range(len(limit)), step) for step in range(max(limit))]).to(device)
        way = Way(decoding.cuts, rules.repetition_penalty)
    ends = (*(model.special.ends if rules.ends else ()), *rules.also)
    with answering(model):
        size = -(-(prompts.shape[1] + max(limit)) // LEAST) * LEAST
        compiled = decoding.steps == "compiled"
        step = step_of(model, len(limit), size, context.places is not None, compiled)
        step.begin(model, prompts, context.places, throws, way)
        answers = written(lambda at: step(model, at, way), step, prompts.shape[1], limit, ends)
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


def written(take: Callable[[int], None], step: Step, start: int, limit: list[int], ends: Sequence[int]) -> list[Answer]:
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
    """What was said up to and with the first of the ends."""
    return said[: next((at + 1 for at, token in enumerate(said) if token in ends), len(said))]
