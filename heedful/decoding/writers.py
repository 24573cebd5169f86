"""What decoding asks of a model that writes, and how far one may go."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

from heedful.attention import Context, Memory
from heedful.attention.mechanisms import Mechanism
from heedful.errors import Refusal
from heedful.inputs import Learned
from heedful.models.special import Special

BEYOND = 50  # an answer may be this much longer than its source, where not told (Vaswani et al., 2017)


class Model(Protocol):
    """Anything made of parts: every nn.Module."""

    def modules(self) -> Iterator[nn.Module]:
        """The model and all its parts."""


class Writer(Model, Protocol):
    """A model that says what comes after each token."""

    @property
    def special(self) -> Special:
        """The ids of its special tokens."""


class Translator(Writer, Protocol):
    """A model that reads a source and says what comes after each token of a target: an encoder-decoder."""

    def encode(self, source: Tensor) -> Context:
        """What the source says: B S -> a context."""

    def decode(self, target: Tensor, context: Context, memory: Memory | None = None) -> Tensor:
        """Scores of the token after each of the target's: B T -> B T V. With a memory, `target` is what is new."""


class Speaker(Writer, Protocol):
    """A model that goes on with what it reads: a decoder alone."""

    def __call__(self, tokens: Tensor, memory: Memory | None = None, positions: Tensor | None = None) -> Tensor:
        """Scores of the token after each: B T -> B T V. With a memory, `tokens` are what is new."""

    def read(self, tokens: Tensor, memory: Memory | None = None, positions: Tensor | None = None) -> Tensor:
        """The states of which scores are made: B T -> B T M."""

    def outputs(self, states: Tensor) -> Tensor:
        """Scores of the token after each: B T M -> B T V."""


def translates(model: Writer) -> bool:
    """Whether a model reads a source apart from what it writes: an encoder-decoder."""
    return hasattr(model, "encode")


def limits(model: Writer, source: Tensor, max_new_tokens: int | None) -> Tensor:
    """How many tokens each answer (B) may have, END counted: what was asked, or 50 more than its source has."""
    length = (source != (model.special.pad if translates(model) else -1)).sum(-1)
    room = longest(model)
    if not translates(model):  # a prompt takes positions of its own
        room -= int(length.max()) if length.numel() else 0
    if room < 1:
        raise Refusal(f"the prompt takes all {longest(model)} positions that the model has learned; shorten it")
    if max_new_tokens is None:
        return (length + BEYOND).clamp(max=room)
    if max_new_tokens < 1:
        raise Refusal(f"max_new_tokens={max_new_tokens} leaves nothing to write; give 1 or more")
    if max_new_tokens > room:
        raise Refusal(
            f"max_new_tokens={max_new_tokens} is beyond the positions that the model has learned; give at most {room}"
        )
    return torch.full_like(length, max_new_tokens)


def longest(model: Model) -> int:
    """How many positions the model has learned, or its mechanism was made for; without end where that is any."""
    return min((part.length for part in model.modules() if isinstance(part, Learned | Mechanism)), default=sys.maxsize)
