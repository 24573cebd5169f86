"""The state of a decoder between two steps, and how far it may go. Both searches stand on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Protocol

import torch
from torch import Tensor, nn

from heedful.attention import Context, Memory
from heedful.attention.mechanisms import Mechanism
from heedful.attention.memory import TreeMemory
from heedful.decoding.packed import packed
from heedful.errors import Failure, Refusal
from heedful.inputs import Learned
from heedful.models.transformer import BEGIN, END, PAD

BEYOND = 50  # an answer may be this much longer than its source, where not told (Vaswani et al., 2017)
ROOM = 16  # of a memory at first; it is copied whenever targets leave or change their order, so it starts small


class Model(Protocol):
    """Anything made of parts: every nn.Module."""

    def modules(self) -> Iterator[nn.Module]:
        """The model and all its parts."""


class Writer(Model, Protocol):
    """A model that reads a source and says what comes after each token of a target: an encoder-decoder."""

    def encode(self, source: Tensor) -> Context:
        """What the source says: B S -> a context."""

    def decode(self, target: Tensor, context: Context, memory: Memory | None = None) -> Tensor:
        """Scores of the token after each of the target's: B T -> B T V. With a memory, `target` is what is new."""


class Steps:
    """Targets being written: owns what is written (B T), what is remembered of it and what it looks at.

    Without a memory the whole of what is written is read again at every step: slow, and the proof of the other way.
    """

    def __init__(self, model: Writer, source: Tensor, memory: Memory | None) -> None:
        self.model, self.memory = model, memory
        self.context = model.encode(source).kept()
        self.written = source.new_full((source.shape[0], 1), BEGIN)
        self.sources = torch.arange(source.shape[0], device=source.device)  # of which source each target is

    def __len__(self) -> int:
        """How many targets are being written."""
        return self.sources.shape[0]

    @property
    def length(self) -> int:
        """How many tokens have been written after BEGIN."""
        return self.written.shape[1] - 1

    def chances(self) -> Tensor:
        """The log-probability of each next token: B V. PAD and BEGIN are never written."""
        scores = self.scores()
        chances = scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        if chances[:, END].isnan().any():  # one score that is no number makes all of its row so
            raise Failure("the model's scores are not numbers, so no token can be chosen; train it at a lower rate")
        for never in (PAD, BEGIN):
            chances[:, never] = -torch.inf
        return chances

    def scores(self) -> Tensor:
        """What the model says of each next token: B V."""
        new = self.written if self.memory is None else self.written[:, -1:]
        return self.model.decode(new, self.context, self.memory)[:, -1]

    def write(self, tokens: Tensor) -> None:
        """Writes one token (B) behind each target."""
        self.written = torch.cat((self.written, tokens[:, None]), 1)

    def take(self, index: Tensor) -> None:
        """Goes on with the targets at `index` alone, in that order; many targets of one source share what it says."""
        index = index.flatten()
        sources = self.sources[index]
        if not torch.equal(sources, self.sources):
            self.context = self.context.take(index)
        if self.memory is not None:
            self.memory.take(index)
        self.written, self.sources = self.written[index], sources


class BranchingSteps(Steps):
    """The same with K targets of each source, side by side (B K), read as rows of one forward.

    What is remembered of them is not copied when they change places, and what a source says is read once for all.
    """

    def __init__(self, model: Writer, source: Tensor, memory: TreeMemory) -> None:
        super().__init__(model, source, memory)
        self.tree = memory
        self.open = len(source)  # sources whose targets are being written

    @staticmethod
    def can_write(model: Model, beams: int) -> bool:
        """Whether so many targets of a source may be rows of one forward; if not, each goes on by itself, as `Steps`.

        A mechanism with a `recall` of its own keeps no columns that rows could choose from: a running sum must be
        copied for each target. And a forward has no more rows than a model has learned positions.
        """
        kinds = [type(part) for part in model.modules() if isinstance(part, Mechanism)]
        return all(kind.recall is Mechanism.recall for kind in kinds) and beams <= longest(model)

    def scores(self) -> Tensor:
        """What the model says of each next token: (B K) V."""
        new = self.written[:, -1].view(self.open, -1)
        return self.model.decode(new, self.context, self.tree).flatten(0, 1)

    def take(self, index: Tensor) -> None:
        """Goes on with the targets at `index`: B K, for each source that stays as many targets of its own."""
        width = len(self) // self.open
        if len(index) < self.open:
            stays = index[:, 0] // width
            self.context = self.context.take(stays)
            self.tree.take(stays)
            self.open = len(index)
        self.tree.follow(index % width)
        index = index.flatten()
        self.written, self.sources = self.written[index], self.sources[index]


def limits(model: Writer, source: Tensor, max_new_tokens: int | None) -> Tensor:
    """How many tokens each answer (B) may have, END counted: what was asked, or 50 more than its source has."""
    room = longest(model)
    if max_new_tokens is None:
        return ((source != PAD).sum(-1) + BEYOND).clamp(max=room)
    if max_new_tokens < 1:
        raise Refusal(f"max_new_tokens={max_new_tokens} leaves nothing to write; give 1 or more")
    if max_new_tokens > room:
        raise Refusal(
            f"max_new_tokens={max_new_tokens} is beyond the positions that the model has learned; give at most {room}"
        )
    return source.new_full(source.shape[:1], max_new_tokens)


def longest(model: Model) -> int:
    """How many positions the model has learned; without end where it learns none."""
    return min((part.length for part in model.modules() if isinstance(part, Learned)), default=sys.maxsize)


@contextmanager
def answering(model: Model) -> Iterator[None]:
    """The model as it answers: without dropout and gradients, its matrices packed; afterwards all is as it was."""
    learning = [part for part in model.modules() if part.training]
    for part in learning:
        part.training = False
    try:
        with torch.no_grad(), packed(model.modules()):
            yield
    finally:
        for part in learning:
            part.training = True


@contextmanager
def searching(model: Model) -> Iterator[None]:
    """Answering in words and numbers alone: no tensor is given out, so that torch need not keep account of any.

    Where hooks watch the model, as `heedful.look` does, what they keep is to be reckoned with later: there it must.
    """
    watched = any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    with answering(model), nullcontext() if watched else torch.inference_mode():
        yield
