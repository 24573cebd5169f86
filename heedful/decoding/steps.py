"""The state of a decoder between two steps. Every search stands on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import cast

import torch
from torch import Tensor

from heedful.attention import Memory
from heedful.attention.mechanisms import Mechanism
from heedful.attention.memory import TreeMemory
from heedful.decoding.packed import Weights, packed
from heedful.decoding.rules import FREE, Rules
from heedful.decoding.writers import Model, Speaker, Translator, Writer, longest, translates
from heedful.errors import Failure

ROOM = 16  # of a memory at first; it is copied whenever targets leave or change their order, so it starts small


class Steps:
    """Targets being written: owns what is written (B T), what is remembered of it and what it looks at.

    Without a memory the whole of what is written is read again at every step: slow, and the proof of the other way.
    A kind says what stands there at first, and how the model is asked.
    """

    def __init__(self, model: Writer, begun: Tensor, memory: Memory | None, rules: Rules) -> None:
        self.special, self.memory, self.rules = model.special, memory, rules
        self.ends = (*(model.special.ends if rules.ends else ()), *rules.also)
        self._ends = begun.new_tensor(self.ends)
        self.written, self.begun = begun, begun.shape[1]  # of which so many tokens stood there at first
        self.sources = torch.arange(len(begun), device=begun.device)  # of which source each target is

    def __len__(self) -> int:
        """How many targets are being written."""
        return self.sources.shape[0]

    @property
    def length(self) -> int:
        """How many tokens have been written behind what stood there at first."""
        return self.written.shape[1] - self.begun

    def chances(self) -> Tensor:
        """The log-probability of each next token, as the rules leave it: B V. What is never written has none."""
        scores = self.rules.weigh(self.scores(), self.written)
        chances = scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        self.checked(chances)
        for never in self.special.never:
            chances[:, never] = -torch.inf
        self.rules.forbid(chances, self.written)
        return chances if self.length or self.special.first is None else certain(chances, self.special.first)

    def checked(self, chances: Tensor) -> None:
        """Fails where scores are not numbers."""
        if chances[:, 0].isnan().any():  # one score that is no number makes all of its row so
            raise Failure("the model's scores are not numbers, so no token can be chosen; train it at a lower rate")

    def scores(self) -> Tensor:
        """What the model says of each next token: B V."""
        raise NotImplementedError

    def write(self, tokens: Tensor) -> None:
        """Writes one token (B) behind each target."""
        self.written = torch.cat((self.written, tokens[:, None]), 1)

    def answers(self, which: Tensor) -> Tensor:
        """What has been written of these targets."""
        return self.written[which, self.begun :]

    def ended(self) -> Tensor:
        """Which targets (B) came to their end with the newest token."""
        ended = (self.written[:, -1:] == self._ends).any(1)
        if self.rules.stops is None:
            return ended
        return ended | ended.new_tensor([self.rules.stops(said) for said in self.written[:, self.begun :].tolist()])

    def take(self, index: Tensor) -> None:
        """Goes on with the targets at `index` alone, in that order."""
        index = index.flatten()
        if self.memory is not None:
            self.memory.take(index)
        self.written, self.sources = self.written[index], self.sources[index]


class Translating(Steps):
    """Targets that an encoder-decoder writes to sources (B S, padded at the end), each from BEGIN on."""

    def __init__(self, model: Translator, source: Tensor, memory: Memory | None, rules: Rules = FREE) -> None:
        super().__init__(model, source.new_full((len(source), 1), model.special.begin), memory, rules)
        self.model, self.context = model, model.encode(source).kept()

    def scores(self) -> Tensor:
        new = self.written if self.memory is None else self.written[:, -1:]
        return self.model.decode(new, self.context, self.memory)[:, -1]

    def take(self, index: Tensor) -> None:
        """Goes on with the targets at `index` alone, in that order; many targets of one source share what it says."""
        sources = self.sources
        super().take(index)
        if not torch.equal(sources, self.sources):
            self.context = self.context.take(index.flatten())


class Continuing(Steps):
    """Prompts (B S, of unequal length: -1 where there is no token) with which a decoder alone goes on."""

    def __init__(self, model: Speaker, prompts: Tensor, memory: Memory | None, rules: Rules = FREE) -> None:
        begun, self.positions = to_the_right(prompts)
        super().__init__(model, begun, memory, rules)
        self.model = model

    def scores(self) -> Tensor:
        if self.memory is not None and self.length:  # which knows where each sequence goes on
            return self.model(self.written[:, -1:], self.memory)[:, -1]
        at = None if self.positions is None else followed(self.positions, self.length)
        states = self.model.read(self.written.clamp(min=0), self.memory, at)
        return self.model.outputs(states[:, -1:])[:, -1]  # the scores behind every token of a prompt would be many

    def take(self, index: Tensor) -> None:
        super().take(index)
        if self.positions is not None:
            self.positions = self.positions[index.flatten()]


class BranchingSteps(Translating):
    """The same with K targets of each source, side by side (B K), read as rows of one forward.

    What is remembered of them is not copied when they change places, and what a source says is read once for all.
    """

    def __init__(self, model: Translator, source: Tensor, memory: TreeMemory, rules: Rules = FREE) -> None:
        super().__init__(model, source, memory, rules)
        self.tree = memory
        self.open = len(source)  # sources whose targets are being written

    @staticmethod
    def can_write(model: Model, beams: int) -> bool:
        """Whether so many targets of a source may be rows of one forward; if not, each goes on by itself.

        A running sum has no columns that rows could choose from: it must be copied for each target. And a forward
        has no more rows than a model has learned positions.
        """
        kinds = [type(part) for part in model.modules() if isinstance(part, Mechanism)]
        return not any(kind.sums for kind in kinds) and beams <= longest(model)

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


def opened(model: Writer, source: Tensor, memory: Memory | None, rules: Rules = FREE) -> Steps:
    """The first step of any model that writes: a target for each source, or each prompt to go on with."""
    if translates(model):
        return Translating(cast(Translator, model), source, memory, rules)
    return Continuing(cast(Speaker, model), source, memory, rules)


def to_the_right(prompts: Tensor) -> tuple[Tensor, Tensor | None]:
    """Prompts (B S), and where each token stands: what is no token (-1) comes first; none where there is no such."""
    present = prompts >= 0
    if present.all():
        return prompts, None
    order = present.int().argsort(dim=1, stable=True)
    prompts, present = prompts.gather(1, order), present.gather(1, order)
    return prompts, present.cumsum(1) - 1


def followed(positions: Tensor, count: int) -> Tensor:
    """Positions (B T) and those of `count` tokens more."""
    return torch.cat((positions, positions[:, -1:] + torch.arange(1, count + 1, device=positions.device)), 1)


def certain(chances: Tensor, token: int) -> Tensor:
    """Log-probabilities (B V) by which one token comes for certain."""
    return torch.full_like(chances, -torch.inf).index_fill_(1, torch.tensor([token], device=chances.device), 0.0)


@contextmanager
def answering(model: Model, weights: Weights = "float32", *, again: bool = False) -> Iterator[None]:
    """The model as it answers: without dropout and gradients, its matrices packed; afterwards all is as it was.

    `again` says that it answered a moment ago (see `packed`).
    """
    parts = list(model.modules())
    learning = [part for part in parts if part.training]
    for part in learning:
        part.training = False
    try:
        with torch.no_grad(), packed(parts, weights, again=again), unplanned():
            yield
    finally:
        for part in learning:
            part.training = True


@contextmanager
def unplanned() -> Iterator[None]:
    """Without cuDNN's attention, which plans for a tenth of a second whenever a sequence has another length."""
    plans = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(plans)


@contextmanager
def searching(model: Model) -> Iterator[None]:
    """Answering in words and numbers alone: no tensor is given out, so that torch need not keep account of any.

    Where hooks watch the model, as `heedful.look` does, what they keep is to be reckoned with later: there it must.
    """
    watched = any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    with answering(model), nullcontext() if watched else torch.inference_mode():
        yield
