"""Generative models: all that a search (greedy, beams, sampling) may ask of a model that writes token by token."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeGuard, cast

from torch import Tensor, nn

from heedful.attention import Context, Everything, Memory
from heedful.attention.mechanisms import Mechanism
from heedful.errors import Refusal
from heedful.inputs import Learned
from heedful.models.family import Model
from heedful.models.heads_asked import NEXT, word_asked
from heedful.models.specs import Special

ROOM = 16  # of a memory at first; it is copied whenever targets leave or change their order, so it starts small


class Beginning(Context):
    """A context that is looked at many times, and the prompts that what is written to it goes on with."""

    def __init__(self, context: Context, prompt: Tensor, places: Tensor | None, lengths: Tensor) -> None:
        super().__init__(context.states, context.mask, context.positions)
        self.made = context.made or {}
        self.prompt, self.places = prompt, places  # B P, and where its tokens stand; none: at 0, 1, 2, ...
        self.lengths = lengths  # B: how much there was to read

    @classmethod
    def of(cls, context: Context, prompt: Tensor, lengths: Tensor) -> Beginning:
        """Of prompts (B P) of unequal length, what is no token (-1) comes first, at places below 0."""
        there = prompt >= 0
        if there.all():
            return cls(context, prompt, None, lengths)
        order = there.int().argsort(dim=1, stable=True)
        return cls(context, prompt.gather(1, order), there.gather(1, order).cumsum(1) - 1, lengths)

    def take(self, index: Tensor) -> Beginning:
        places = None if self.places is None else self.places.index_select(0, index)
        rows = self.prompt.index_select(0, index), places, self.lengths.index_select(0, index)
        return Beginning(super().take(index), *rows)


class Autoregressive(Model):
    """Autoregressive model: says what comes after each token, looking at a context."""

    special: Special
    outputs: nn.Module  # scores of states: B T M -> B T V

    def states(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """The states that scores are made of: B T -> B T M. With a memory, `tokens` are what is new."""
        raise NotImplementedError

    def decode(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """Scores of the token after each: B T -> B T V. With a memory, `tokens` are what is new."""
        scores: Tensor = self.outputs(self.states(tokens, context, memory, positions))
        return scores

    def memory(self, beams: int = 1) -> Memory | None:
        """An empty memory of the kind that it uses, a KV cache; a tree where so many beams may share a forward.

        One that has none reads all that was written again for every token.
        """
        return Memory(ROOM)


class Decoder(Autoregressive):
    """Decoder: looks by cross-attention at the context that it is given, whose states are as wide as its own.

    No model that makes its own context is one: who took a GPT for a decoder would train a captioner that sees nothing.
    """

    @property
    def width(self) -> int:
        """How wide the states are that it looks at."""
        raise NotImplementedError


class Writer(Autoregressive):
    """Generative model: it makes a context of a batch, and says what comes after each token, looking at that.

    One that reads a source is called with the fields that it `reads`, sorted by name, and a target (`teacher_forced`).
    """

    reads: frozenset[str] = frozenset()  # the fields of a batch that it conditions on, beside the prompt

    def begin(self, batch: Mapping[str, Tensor]) -> Beginning:
        """What a batch says: a context of what is read in it, and the prompts that answers go on with."""
        raise NotImplementedError

    def room(self, context: Beginning) -> int:
        """How many tokens it may write behind the prompts; the last of them is never read."""
        return longest(self) - context.prompt.shape[1] + 1


class LanguageModel(Writer):
    """Language model (decoder-only): what a family must be that learns to predict each next token of a text.

    It is called as it is asked to `read`, with tokens and `documents`, and gives the scores of those states.
    """

    spec: Any  # its numbers, `vocab` among them

    def read(
        self,
        tokens: Tensor,
        memory: Memory | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """The states that scores are made of: B T -> B T M. With a memory, `tokens` are what is new.

        Of texts packed into one row, `documents` (B T) says which each token is of, and none sees another.
        """
        raise NotImplementedError

    def states(
        self, tokens: Tensor, context: Context, memory: Memory | None = None, positions: Tensor | None = None
    ) -> Tensor:
        return self.read(tokens, memory, positions)

    def begin(self, batch: Mapping[str, Tensor]) -> Beginning:
        """The prompts to go on with (B P, -1 where there is no token), and nothing else to look at."""
        prompt = batch["prompt"]
        nothing = Context(prompt.new_empty(len(prompt), 0, 0), Everything())
        return Beginning.of(nothing, prompt, (prompt >= 0).sum(-1))

    def room(self, context: Beginning) -> int:
        """How many tokens it may write behind the prompts, each of which could be read."""
        return longest(self) - max(context.lengths.tolist(), default=0)


def language_model(model: nn.Module) -> LanguageModel:
    """The model itself as a language model; another kind is refused. torch wraps one that it has compiled."""
    if not isinstance(getattr(model, "_orig_mod", model), LanguageModel):
        raise Refusal(
            f"{type(model).__name__} is no language model; derive it from heedful.models.writer.LanguageModel "
            "and give it `read(tokens, memory, positions, documents)`"
        )
    return cast(LanguageModel, model)


def teacher_forced(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Scores of the token after each of the right targets of a batch (teacher forcing): B T V.

    It is a call of the model, and not of its methods, so that one that is compiled runs as it was compiled.
    """
    read: frozenset[str] = model.reads  # type: ignore[assignment]
    scores: Tensor = model(*(batch[name] for name in sorted(read)), batch["target"])
    return scores


def writes(model: nn.Module) -> TypeGuard[Writer]:
    """Whether a model writes: it can, and nothing else is asked of it. torch wraps one that it has compiled."""
    spec: Any = getattr(model, "spec", None)
    return isinstance(getattr(model, "_orig_mod", model), Writer) and word_asked(spec) == NEXT


def memory_for(model: nn.Module, beams: int) -> Memory:
    """The empty memory of what looks at a context: a tree for many beams, as rows of one forward.

    It has no more rows than there are learned positions. A running sum has no columns that rows could choose from: it
    must be copied for each target.
    """
    sums = any(part.sums for part in model.modules() if isinstance(part, Mechanism))
    if beams == 1 or sums or beams > longest(model):
        return Memory(ROOM)
    from heedful.attention.kv_cache_tree import TreeMemory

    return TreeMemory(ROOM * beams)


def longest(model: nn.Module) -> int:
    """How many positions the model has learned, or its mechanism was made for; without end where that is any."""
    return min((part.length for part in model.modules() if isinstance(part, Learned | Mechanism)), default=sys.maxsize)
