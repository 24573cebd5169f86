"""Model specs (configs): what all families have, and the keys that some of them share, each in a mixin of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator

from heedful.models import blueprint as parts
from heedful.models.blueprint import Blueprint

PAD, BEGIN, END, UNKNOWN = 0, 1, 2, 3  # the ids of the special tokens, in every vocabulary made here
# Flat keys of the decoder where both sides have one spec, and the encoder's that count where they are not given.
DECODER = {"decoder_depth": "depth", "decoder_heads": "heads", "decoder_hidden": "hidden"}
Count = Annotated[int, Field(ge=1)]
Id = Annotated[int, Field(ge=0, lt=2**31)]
Stages = Annotated[list[Annotated[int, Field(ge=1, le=1000)]], Field(min_length=1, max_length=16)]  # blocks of each
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
SHARED = frozenset(field.name for field in fields(Blueprint))  # keys that most families have


class Spec(BaseModel):
    """Model config: frozen, validated, printable; one part of a YAML file, one JSON in a model folder.

    No part ever sees it. A family has its own keys, takes those of the mixins below that say something to it, and
    refuses all others.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    decodes: ClassVar[bool] = False  # whether the last token has read all: a decoder alone, or behind an encoder
    use: ClassVar[str] = ""  # what a model is for that was learned elsewhere, where it is asked nothing else
    family: str
    """The family of models, such as `bert` or `vit`; `start` takes that of the model it starts from."""

    @property
    def stacked(self) -> dict[str, int]:
        """How many blocks of their own a model's stacks have, by key."""
        return {key: value for key, value in self if key.endswith("depth") and value is not None}

    def with_depth(self, blocks: int) -> Self:
        """The same with so many blocks in every stack."""
        return self.model_copy(update=dict.fromkeys(self.stacked, blocks))

    @property
    def longest(self) -> int:
        """The longest sequence that the model takes; without end where none is too long."""
        return sys.maxsize

    @property
    def states_per_token(self) -> int:
        """How many numbers all blocks keep of each token for its gradient, where they are alike."""
        return 0

    @property
    def knows_order(self) -> bool:
        """Whether the model can tell in which order its inputs stand."""
        return True


class Attends(Spec):
    """Keys of families whose blocks attend."""

    width: Count = 128
    """The width of the model: how many numbers represent each token."""
    heads: Count = 4
    """The number of attention heads."""
    dropout: Share = 0.0
    """The share of activations that dropout sets to zero in training."""
    mechanism: str = "softmax"
    """The kind of attention, such as `softmax`, `linear` or `window(size=64)`; see `heedful attention list`."""
    norm: str = "layer"
    """The normalisation: `layer` (LayerNorm), `rms` (RMSNorm) or `batch` (BatchNorm)."""
    feedforward: str = "relu"
    """The feed-forward layer: an activation such as `relu` or `gelu`, or `gated` (SwiGLU)."""

    @property
    def blueprint(self) -> Blueprint:
        """What the blocks are made of."""
        return Blueprint(**{key: value for key, value in self if key in SHARED})


class Deep(Attends):
    """Keys of families whose blocks are alike, one above the other."""

    depth: Count = 2
    """The number of blocks."""
    hidden: Count | None = None
    """The width of the feed-forward layer; four times the model's width if unset."""
    position: str = "sine"
    """How the model knows positions: `sine`, `learned`, `rotary`, `none` and others."""
    bias: str = "none"
    """What is added to attention scores: `none`, `alibi`, `buckets` (T5), `gaussian`, `span` and others."""
    order: str = "pre"
    """Where the norms stand: `pre` (before each layer), `post` (after it, as in the 2017 paper) or `scaled`."""

    @property
    def knows_order(self) -> bool:
        return self.position != "none" or self.bias != "none"

    @property
    def states_per_token(self) -> int:
        return self.width * max(self.stacked.values())


class Projects(Deep):
    """Keys of families that leave open how heads look, and how they come together."""

    key: Count | None = None
    """The width of a head; the model's width divided by the number of heads if unset."""
    length: Annotated[int, Field(ge=1, lt=2**31)] = 512
    """The longest sequence that the model reads, in tokens."""
    project: str = "heads"
    """How queries, keys and values are made: `heads` (one projection for each head) or `collaborative`."""
    join: str = "matrix"
    """How the heads' outputs are combined: `matrix` or `routed`."""
    project_bias: bool = True
    """Whether the projections of queries, keys and values have a bias."""
    join_bias: bool = True
    """Whether the projection that combines the heads has a bias."""


class Groups(Projects):
    """Keys of families whose heads may share keys and values, and norm them."""

    groups: Count | None = None
    """How many groups of heads share keys and values (grouped-query attention); one group a head if unset."""
    key_norm: bool = False
    """Whether queries and keys are normalised, head by head."""


class Stacked(Groups):
    """Keys of families whose layers may exchange more than a stream."""

    stack: str = "plain"
    """What layers pass on beside their output: `plain` (nothing), `realformer`, `lazyformer`, `luna` and others."""


class ReadsInOrder(Groups):
    """What families of sequences share: their parts fit together, and only positions or a bias tell them the order."""

    @property
    def longest(self) -> int:
        return self.length

    @model_validator(mode="after")
    def _parts_can_be_made(self) -> Self:
        """Builds one of each part and drops it, so that a word or number that does not fit is refused here."""
        with torch.device("meta"):
            made = self.with_depth(1).blueprint
            parts.stack(made), parts.position(made), parts.bias(made), parts.mask(made)
        return self


class LanguageSpec(ReadsInOrder):
    """What language models share: a vocabulary, and the ids of the tokens that stand for no text."""

    use = "text-generation"
    vocab: Count
    """The size of the vocabulary; filled in from the tokenizer."""
    tied: bool = True
    """Whether the output layer shares its weights with the token embedding."""
    pad: Id | None = PAD
    """The id of the padding token."""
    begin: Id | None = BEGIN
    """The id of the token that begins a text."""
    end: Id | list[Id] | None = END
    """The id of the token that ends a text, or several ids."""

    @property
    def ends(self) -> tuple[int, ...]:
        """The ids that end a text."""
        return tuple(self.end) if isinstance(self.end, list) else () if self.end is None else (self.end,)

    @model_validator(mode="after")
    def _table_is_as_wide_as_the_model(self) -> Self:
        parts.check_tied(self.blueprint, self.tied)
        return self


@dataclass(frozen=True)
class Special:
    """What fills rows up, what a target begins with, and what ends it; ids that no model may write, or must first.

    An id of -1 is no token: the model has none of that kind.
    """

    pad: int
    begin: int
    end: int
    never: tuple[int, ...] = ()  # is written
    first: int | None = None  # what every target has to begin with, after `begin`
    others: tuple[int, ...] = ()  # that end a target too

    @property
    def ends(self) -> tuple[int, ...]:
        """All that ends a target."""
        return (*((self.end,) if self.end >= 0 else ()), *self.others)


SPECIAL = Special(PAD, BEGIN, END, never=(PAD, BEGIN))  # of models that are made here
