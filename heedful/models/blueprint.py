"""Blueprint of attention blocks: the numbers and words of a spec, and the parts that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
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
from heedful.models.part_tables import norm as norm

QUIET = 0.8  # of the last norm's gain, with which a fresh model is sure of nothing, be it of few tokens


@dataclass(frozen=True)
class Blueprint:
    """Config of attention blocks: all that they are made of. What a family's spec has no key for is plain."""

    width: int
    depth: int = 1
    heads: int = 1
    groups: int | None = None
    key: int | None = None
    hidden: int | None = None
    length: int = 512
    dropout: float = 0.0
    mechanism: str = "softmax"
    project: str = "heads"
    join: str = "matrix"
    stack: str = "plain"
    position: str = "none"
    bias: str = "none"
    norm: str = "layer"
    order: str = "pre"
    feedforward: str = "relu"
    project_bias: bool = True
    join_bias: bool = True
    key_norm: bool = False
    tasks: int | None = None  # of which a text is of one, where a bias minds


def rotary(spec: Blueprint) -> Rotary | None:
    """The turning of queries and keys, where the spec's position says so."""
    if part_words.parse(spec.position)[0] not in part_tables.ROTARY:
        return None
    if (spec.key or spec.width % spec.heads == 0) and key(spec) % 2:
        raise Refusal(f"rotary positions turn pairs of channels and a head has {key(spec)}; make it even")
    made: Rotary = part_words.choose("position", spec.position, part_tables.ROTARY)
    return made


def position(spec: Blueprint) -> Position:
    """The position that is given with the inputs."""
    if rotary(spec) is not None:
        return part_tables.POSITIONS["none"]()
    made: Position = part_words.choose(
        "position", spec.position, part_tables.POSITIONS, width=spec.width, length=spec.length, room=spec.width // 4
    )
    if made.room >= spec.width:
        raise Refusal(f"position {spec.position!r} leaves no room for the inputs in a width of {spec.width}")
    return made


def check_tied(spec: Blueprint, tied: bool) -> None:
    """Refuses an output that would read a narrower table backwards."""
    if tied and position(spec).room:
        raise ValueError(
            f"position {spec.position!r} narrows the token table for the output that reads it; set model.tied=false"
        )


def bias(spec: Blueprint, both_ways: bool = True) -> Bias | None:
    """What is added to the scores of self-attention."""
    more = {} if spec.tasks is None else {"tasks": spec.tasks}
    made: Bias | None = part_words.choose(
        "bias", spec.bias, part_tables.BIASES, heads=spec.heads, both_ways=both_ways, length=spec.length, **more
    )
    return made


def mask(spec: Blueprint) -> Mask:
    """What the mechanism's word hides, for self-attention."""
    return part_tables.mask(spec.mechanism, spec.heads) or Everything()


def key(spec: Blueprint) -> int:
    """The width of a head."""
    return spec.key or spec.width // spec.heads


def _mechanism(spec: Blueprint) -> Any:
    made = part_tables.mechanism(spec.mechanism, spec.heads, key(spec), spec.length)
    if not made.turns and rotary(spec) is not None:
        raise Refusal(
            f"model.mechanism={spec.mechanism} has a channel in its keys that is no direction, and rotary positions "
            "would turn it; train with model.position=sine"
        )
    return made


def _join(spec: Blueprint) -> Any:
    given = {"heads": spec.heads, "value": key(spec), "width": spec.width, "bias": spec.join_bias}
    return part_words.choose("join", spec.join, part_tables.JOINS, **given)


def self_attention(spec: Blueprint) -> Any:
    """Attention of a sequence to itself: one, or a pair of them."""
    if part_words.parse(spec.mechanism)[0] in part_tables.PAIRS:
        return part_words.choose(
            "mechanism", spec.mechanism, part_tables.PAIRS, attention=lambda: one_attention(spec), width=spec.width
        )
    return one_attention(spec)


def one_attention(spec: Blueprint) -> Attention:
    """Attention by the spec's own projection, mechanism and join."""
    mechanism, kind = _mechanism(spec), part_words.entry_named("project", spec.project, part_tables.PROJECTIONS)
    if mechanism.shares and kind is not MultiHead:
        raise Refusal(f"model.mechanism={spec.mechanism} makes its queries its keys; leave model.project out")
    kind = SharedQK if mechanism.shares else kind
    normed = norm(spec.norm) if spec.key_norm else None
    wide: dict[str, Any] = {"key": spec.key, "value": spec.key, "position": rotary(spec), "bias": spec.project_bias}
    return Attention(kind(spec.width, spec.heads, spec.groups, norm=normed, **wide), mechanism, _join(spec))


def cross_attention(spec: Blueprint) -> CrossAttention:
    """Attention of a sequence to another."""
    wide: dict[str, Any] = {"key": spec.key, "value": spec.key, "position": rotary(spec), "bias": spec.project_bias}
    project = Across(spec.width, spec.heads, spec.groups, **wide)
    return CrossAttention(project, _mechanism(spec), _join(spec))


def feedforward(spec: Blueprint) -> nn.Module:
    """The small network on every position."""
    hidden = spec.hidden or 4 * spec.width
    made: nn.Module = part_words.choose(
        "feedforward", spec.feedforward, part_tables.FEEDFORWARDS, width=spec.width, hidden=hidden
    )
    return made


def block(spec: Blueprint) -> Block:
    """An encoder's block."""
    kind = part_words.choose("order", spec.order, part_tables.BLOCKS)
    made: Block = kind(spec.width, self_attention(spec), feedforward(spec), norm(spec.norm), spec.dropout)
    return made


def stack(spec: Blueprint, make: Callable[[Blueprint], nn.Module] | None = None) -> Stack:
    """As many blocks as the spec is deep, an encoder's where none are given, strung together as it says."""
    if spec.stack != "plain" and part_words.parse(spec.mechanism)[0] in part_tables.PAIRS:
        raise Refusal(f"model.stack={spec.stack} wants one attention a block; leave it or model.mechanism out")
    given = {"blocks": [(make or block)(spec) for _ in range(spec.depth)], "norm": last_norm(spec)}
    made: Stack = part_words.choose(
        "stack", spec.stack, part_tables.STACKS, **given, width=spec.width, heads=spec.heads
    )
    return made


def cross_block(spec: Blueprint) -> CrossBlock:
    """A decoder's block."""
    kind = part_words.entry_named("order", spec.order, part_tables.CROSS_BLOCKS)
    return kind(
        spec.width, self_attention(spec), cross_attention(spec), feedforward(spec), norm(spec.norm), spec.dropout
    )


def last_norm(spec: Blueprint) -> nn.Module | None:
    """The norm after a stack, where its blocks leave the stream unnormed."""
    return norm(spec.norm)(spec.width) if part_words.parse(spec.order)[0] != "post" else None


@torch.no_grad()
def init_tied(decoder: Stack) -> None:
    """The initialisation of a decoder whose output is tied: its last norm turns every second channel around.

    Fresh states resemble the tokens just read, and a table that is read backwards would be sure that each comes again.
    Turned so, they resemble no token more than another.
    """
    norms: list[Any] = [part for part in decoder.modules() if isinstance(part, tuple(part_tables.NORMS.values()))]
    norms[-1].weight *= QUIET
    norms[-1].weight[1::2] *= -1
