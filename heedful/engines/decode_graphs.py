"""Decoding by CUDA graphs: a step is captured once and replayed, and nobody waits for the GPU between two."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import cache
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from heedful.attention.kv_cache import FixedMemory
from heedful.engines import decode_kernel
from heedful.engines.engine import Engine, shallow_copy
from heedful.models.writer import Writer
from heedful.outputs import Rounded

LEAST = 64  # columns that a step looks at; twice as many where they do not do, and again
WARM = 3  # steps before a capture, in which the libraries choose their kernels
EARLY = {"triton.enable_pdl": True}  # a kernel is begun beside the end of the one before, from NVIDIA's Hopper on
TUNED = {
    "coordinate_descent_tuning": True,  # with it inductor reads a matrix for one row at the speed of the memory
    "realize_opcount_threshold": 6,  # and what it is multiplied with is made once, not anew for each of its columns
}


class DecodeGraphs(Engine):
    """Steps of writing as CUDA graphs: of a decoder alone on a GPU, where they are asked for."""

    def refuses(self, model: nn.Module) -> str:
        if not isinstance(model, Writer) or model.reads:
            return "decode_graphs is for a decoder alone, without a source to read; call the model as it is"
        if any(one.device.type != "cuda" for one in model.parameters()):
            return "decode_graphs is a GPU's, and the model lies on a CPU; call the model as it is"
        return ""


class Way(Protocol):
    """How a token is chosen where it is not the likeliest. Ways that are equal choose alike."""

    def weigh(self, scores: Tensor, text: Tensor) -> Tensor:
        """Scores (B V) behind the text so far (B S, -1 where there is none yet), as rules leave them."""

    def choose(self, chances: Tensor, throw: Callable[[], Tensor]) -> Tensor:
        """A token of each row by log-probabilities (B V), and by numbers thrown for it (B) where it takes any: B 1."""


class Step:
    """One step of a model, in places that never change: the newest tokens are read and the next ones chosen.

    `text` (B S) are the tokens of all columns, of which the last is newest and not yet read, `gains` their
    log-probabilities and `throws` the numbers they are drawn by. On a GPU a step is captured when first taken; on a CPU
    it is called as it is, which is the proof of the other way.
    """

    def __init__(self, model: nn.Module, batch: int, size: int, compiled: bool) -> None:
        weight, kernel = next(model.parameters()), decode_kernel.DecodeKernel()
        self.model: Any = shallow_copy(model if kernel.refuses(model) else kernel.runner(model))  # for the model may go
        self.memory, self.outputs = FixedMemory(size), Rounded(cast(Any, model.outputs))
        decode_kernel.prepare(self.model, self.memory)
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
        self.graphs: dict[tuple[int, Way | None], torch.cuda.CUDAGraph] = {}

    def plain(self) -> Tensor:
        """The scores behind the newest tokens: B V."""
        return self.outputs(self.model.read(self.newest, self.memory)[:, -1])

    def greedy(self) -> tuple[Tensor, Tensor]:
        """The likeliest tokens behind the newest ones, and their log-probabilities: B 1 both."""
        return self.chosen(self.plain(), None)

    def begin(self, prompts: Tensor, positions: Tensor | None, throws: Tensor | None, way: Way | None) -> None:
        """Reads prompts (B P) and chooses their first tokens; what was there before is forgotten."""
        start = prompts.shape[1]
        self.rewind(0)
        self.outputs.refresh()
        self.text[:, :start] = prompts
        if throws is not None:
            self.throws[start : start + len(throws)] = throws
        self.memory.reach = start
        states = self.model.read(prompts.clamp(min=0), self.memory, positions)
        self.write(*self.chosen(self.outputs(states[:, -1]), way))

    def take(self, way: Way | None) -> None:
        """Reads the newest tokens and writes the next ones. Dice are thrown outside of what is compiled."""
        self.write(*(self.likeliest() if way is None else self.chosen(self.scores(), way)))

    def chosen(self, scores: Tensor, way: Way | None) -> tuple[Tensor, Tensor]:
        """The next tokens by scores (B V), and their log-probabilities: B 1 both."""
        scores = scores if way is None else way.weigh(scores, self.text)
        chances = scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        tokens = chances.argmax(-1, keepdim=True) if way is None else way.choose(chances, self.throw)
        return tokens, chances.gather(1, tokens).double()

    def throw(self) -> Tensor:
        """The numbers that the next tokens are drawn by: B."""
        return self.throws.index_select(0, self.place)[0]

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

    def __call__(self, column: int, way: Way | None) -> None:
        """Takes the step that reads the tokens at this column."""
        self.memory.reach = reach(column + 1, self.memory.size) if self.memory.asked else self.memory.size
        if not self.newest.is_cuda:
            return self.take(way)
        key = self.memory.reach, way
        if key not in self.graphs:
            self.graphs[key] = self.captured(column, way)
        self.graphs[key].replay()

    def captured(self, column: int, way: Way | None) -> torch.cuda.CUDAGraph:
        """Takes a few steps aside, captures one, and leaves everything as it was."""
        newest, aside = self.newest.clone(), torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                self.take(way)
                self.rewind(column)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool()):
            self.take(way)
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


def step_of(model: nn.Module, batch: int, columns: int, padded: bool, compiled: bool) -> Step:
    """The step of a model, taken before or made anew where anything lies elsewhere now."""
    size = -(-columns // LEAST) * LEAST
    weights = tuple(one.data_ptr() for one in model.parameters())
    wanted, steps = (batch, size, padded, weights), made.setdefault(model, {})
    if compiled not in steps or steps[compiled][0] != wanted:
        steps.pop(compiled, None)  # before there are two
        steps[compiled] = wanted, Step(model, batch, size, compiled)
    return steps[compiled][1]
