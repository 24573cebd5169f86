"""What all families of models share: the numbers and words of a spec, and the parts made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import nn

from heedful.attention import (
    Across,
    Attention,
    Bias,
    CrossAttention,
    Everything,
    Mask,
    MultiHead,
    Rotary,
    SharedQK,
)
from heedful.blocks import Block, CrossBlock, Stack
from heedful.errors import Refusal
from heedful.inputs import Position
from heedful.models import part_tables, part_words

PAD, BEGIN, END, UNKNOWN = 0, 1, 2, 3  # the ids of the special tokens, in every vocabulary made here
Count = Annotated[int, Field(ge=1)]
Id = Annotated[int, Field(ge=0, lt=2**31)]
Stages = Annotated[list[Annotated[int, Field(ge=1, le=1000)]], Field(min_length=1, max_length=16)]  # blocks of each
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
QUIET = 0.8  # of the last norm's gain, with which a fresh model is sure of nothing, be it of few tokens
ATTENTION = ("mechanism", "project", "join", "stack", "bias", "groups", "key", "key_norm")  # keys of attention alone


class Spec(BaseModel):
    """Frozen, validated, printable: one part of a YAML file, one JSON in a model folder. No part ever sees it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    sizes: ClassVar[dict[str, dict[str, Any]]] = {}
    placed: ClassVar[bool] = False  # whether its parts know where things stand, whatever its position says
    lacking: ClassVar[tuple[str, ...]] = ()  # keys that say nothing to a family, which has no such part

    family: str
    width: Count = 128
    depth: Count = 2
    heads: Count = 4
    groups: Count | None = None  # of heads that share keys and values; as many as heads where not given
    key: Count | None = None  # the width of a head; the model's shared out among the heads where not given
    hidden: Count | None = None  # of the feed-forward; four widths where not given
    length: Annotated[int, Field(ge=1, lt=2**31)] = 512  # the longest sequence; kernels count positions in 32 bits
    dropout: Share = 0.0
    mechanism: str = "softmax"
    project: str = "heads"  # what heads share: heads, collaborative
    join: str = "matrix"  # how they come together: matrix, routed
    stack: str = "plain"  # what layers exchange: plain, realformer, lazyformer, ...
    position: str = "sine"
    bias: str = "none"
    norm: str = "layer"
    order: str = "pre"
    feedforward: str = "relu"
    project_bias: bool = True  # whether queries, keys and values have one each
    join_bias: bool = True  # and what brings heads together
    key_norm: bool = False  # whether queries and keys are normed, head by head

    @property
    def stacked(self) -> dict[str, int]:
        """How many blocks of their own a model's stacks have, by key."""
        return {key: value for key, value in self if key.endswith("depth") and value is not None}

    @model_validator(mode="after")
    def _keys_say_something(self) -> Self:
        for key in self.lacking:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"the family {self.family} has nothing that model.{key} could change; leave it out")
        return self

    @model_validator(mode="after")
    def _parts_can_be_made(self) -> Self:
        """Builds one of each part and drops it, so that a word or number that does not fit is refused here."""
        with torch.device("meta"):
            stack(self.model_copy(update={"depth": 1})), position(self), bias(self), mask(self)
        return self


class LanguageSpec(Spec):
    """What language models share: a vocabulary, and the ids of the tokens that stand for no text."""

    vocab: Count
    tied: bool = True  # the output reads the table of the inputs backwards
    pad: Id | None = PAD
    begin: Id | None = BEGIN
    end: Id | list[Id] | None = END  # any of these ends a text

    @property
    def ends(self) -> tuple[int, ...]:
        """The ids that end a text."""
        return tuple(self.end) if isinstance(self.end, list) else () if self.end is None else (self.end,)

    @model_validator(mode="after")
    def _table_is_as_wide_as_the_model(self) -> Self:
        if self.tied and position(self).room:
            raise ValueError(
                f"position {self.position!r} narrows the token table for the output that reads it; set model.tied=false"
            )
        return self


def rotary(spec: Spec) -> Rotary | None:
    """The turning of queries and keys, where the spec's position says so."""
    if part_words.parse(spec.position)[0] not in part_tables.ROTARY:
        return None
    if (spec.key or spec.width % spec.heads == 0) and key(spec) % 2:
        raise Refusal(f"rotary positions turn pairs of channels and a head has {key(spec)}; make it even")
    made: Rotary = part_words.choose("position", spec.position, part_tables.ROTARY)
    return made


def position(spec: Spec) -> Position:
    """The position that is given with the inputs."""
    if rotary(spec) is not None:
        return part_tables.POSITIONS["none"]()
    made: Position = part_words.choose(
        "position", spec.position, part_tables.POSITIONS, width=spec.width, length=spec.length, room=spec.width // 4
    )
    if made.room >= spec.width:
        raise Refusal(f"position {spec.position!r} leaves no room for the inputs in a width of {spec.width}")
    return made


def bias(spec: Spec, both_ways: bool = True) -> Bias | None:
    """What is added to the scores of self-attention."""
    more = {"tasks": spec.tasks} if hasattr(spec, "tasks") else {}
    made: Bias | None = part_words.choose(
        "bias", spec.bias, part_tables.BIASES, heads=spec.heads, both_ways=both_ways, length=spec.length, **more
    )
    return made


def mask(spec: Spec) -> Mask:
    """What the mechanism's word hides, for self-attention."""
    return part_tables.mask(spec.mechanism, spec.heads) or Everything()


def norm(spec: Spec) -> Callable[[int], nn.Module]:
    """The norm of a width."""
    return part_tables.norm(spec.norm)


def key(spec: Spec) -> int:
    """The width of a head."""
    return spec.key or spec.width // spec.heads


def _mechanism(spec: Spec) -> Any:
    made = part_tables.mechanism(spec.mechanism, spec.heads, key(spec), spec.length)
    if not made.turns and rotary(spec) is not None:
        raise Refusal(
            f"model.mechanism={spec.mechanism} has a channel in its keys that is no direction, and rotary positions "
            "would turn it; train with model.position=sine"
        )
    return made


def _join(spec: Spec) -> Any:
    given = {"heads": spec.heads, "value": key(spec), "width": spec.width, "bias": spec.join_bias}
    return part_words.choose("join", spec.join, part_tables.JOINS, **given)


def self_attention(spec: Spec) -> Any:
    """Attention of a sequence to itself: one, or a pair of them."""
    if part_words.parse(spec.mechanism)[0] in part_tables.PAIRS:
        return part_words.choose(
            "mechanism", spec.mechanism, part_tables.PAIRS, attention=lambda: one_attention(spec), width=spec.width
        )
    return one_attention(spec)


def one_attention(spec: Spec) -> Attention:
    """Attention by the spec's own projection, mechanism and join."""
    mechanism, kind = _mechanism(spec), part_words.named("project", spec.project, part_tables.PROJECTIONS)
    if mechanism.shares and kind is not MultiHead:
        raise Refusal(f"model.mechanism={spec.mechanism} makes its queries its keys; leave model.project out")
    kind = SharedQK if mechanism.shares else kind
    normed = norm(spec) if spec.key_norm else None
    wide: dict[str, Any] = {"key": spec.key, "value": spec.key, "position": rotary(spec), "bias": spec.project_bias}
    return Attention(kind(spec.width, spec.heads, spec.groups, norm=normed, **wide), mechanism, _join(spec))


def cross_attention(spec: Spec) -> CrossAttention:
    """Attention of a sequence to another."""
    wide: dict[str, Any] = {"key": spec.key, "value": spec.key, "position": rotary(spec), "bias": spec.project_bias}
    project = Across(spec.width, spec.heads, spec.groups, **wide)
    return CrossAttention(project, _mechanism(spec), _join(spec))


def feedforward(spec: Spec) -> nn.Module:
    """The small network on every position."""
    hidden = spec.hidden or 4 * spec.width
    made: nn.Module = part_words.choose(
        "feedforward", spec.feedforward, part_tables.FEEDFORWARDS, width=spec.width, hidden=hidden
    )
    return made


def block(spec: Spec) -> Block:
    """An encoder's block."""
    kind = part_words.choose("order", spec.order, part_tables.BLOCKS)
    made: Block = kind(spec.width, self_attention(spec), feedforward(spec), norm(spec), spec.dropout)
    return made


def stack(spec: Spec, make: Callable[[Spec], nn.Module] | None = None) -> Stack:
    """As many blocks as the spec is deep, an encoder's where none are given, strung together as it says."""
    if spec.stack != "plain" and part_words.parse(spec.mechanism)[0] in part_tables.PAIRS:
        raise Refusal(f"model.stack={spec.stack} wants one attention a block; leave it or model.mechanism out")
    given = {"blocks": [(make or block)(spec) for _ in range(spec.depth)], "norm": last_norm(spec)}
    made: Stack = part_words.choose(
        "stack", spec.stack, part_tables.STACKS, **given, width=spec.width, heads=spec.heads
    )
    return made


def cross_block(spec: Spec) -> CrossBlock:
    """A decoder's block."""
    kind = part_words.named("order", spec.order, part_tables.CROSS_BLOCKS)
    return kind(spec.width, self_attention(spec), cross_attention(spec), feedforward(spec), norm(spec), spec.dropout)


def last_norm(spec: Spec) -> nn.Module | None:
    """The norm after a stack, where its blocks leave the stream unnormed."""
    return norm(spec)(spec.width) if part_words.parse(spec.order)[0] != "post" else None


@torch.no_grad()
def init_tied(decoder: Stack) -> None:
    """The initialisation of a decoder whose output is tied: its last norm turns every second channel around.

    Fresh states resemble the tokens just read, and a table that is read backwards would be sure that each comes again.
    Turned so, they resemble no token more than another.
    """
    norms: list[Any] = [part for part in decoder.modules() if isinstance(part, tuple(part_tables.NORMS.values()))]
    norms[-1].weight *= QUIET
    norms[-1].weight[1::2] *= -1
