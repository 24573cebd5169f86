"""Masks, biases and sights at toy size, on which the laws of attention are measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from heedful.attention import (
    ALiBi,
    Axial,
    Bias,
    BigBird,
    Blocks,
    Buckets,
    Causal,
    Documents,
    Everything,
    Fixed,
    FixedMemory,
    Given,
    Local,
    Local2D,
    Longformer,
    Mask,
    MultiScale,
    Padding,
    Prefix,
    Sight,
    Strided,
    Table,
    Turns,
    Window,
)
from heedful.models import part_tables, part_words

BATCH, HEADS, LENGTH, KEY, VALUE, WIDTH = 3, 6, 7, 4, 5, 8
LONGEST = 72  # sequence that is asked about anywhere
EXACT: dict[str, Any] = {"rtol": 0.0, "atol": 1e-10}  # of the laws, which hold in float64


@cache
def masks(length: int = LENGTH) -> dict[str, Mask]:
    """Every mask, for a batch of BATCH sequences of `length` and HEADS heads; some leave rows with nothing to see."""
    coins = torch.Generator().manual_seed(length)

    def some(*shape: int) -> Tensor:
        return torch.rand(shape, generator=coins) < 0.6

    lengths = torch.tensor([length, length - 3, 0])
    ids = torch.randint(0, 3, (BATCH, length), generator=coins).sort(-1).values
    layout = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    size = -(-length // 3)
    return {
        "everything": Everything(),
        "causal": Causal(),
        "window": Window(3),
        "causal & window": Causal() & Window(2),
        "padding": Padding(lengths),
        "one length for all": Padding(torch.tensor([length - 2])),
        "causal & padding": Causal() & Padding(lengths),
        "causal | prefix": Causal() | Prefix(3),
        "causal | prefixes": Causal() | Prefix(torch.tensor([0, 2, 3])),
        "documents": Documents(ids),
        "causal & documents of one": Causal() & Documents(ids[:1]),
        "blocks": Blocks(size),
        "blocks with a layout": Blocks(size, layout),
        "given": Given(some(length, length)),
        "given for each sequence": Given(some(BATCH, 1, length, length)),
        "given for each head": Given(some(1, HEADS, length, length)),
        "given for all": Given(some(BATCH, HEADS, length, length)) & Causal(),
        "window | documents": Window(2) | Documents(ids),
    } | other_masks(lengths, size)


def other_masks(lengths: Tensor, size: int) -> dict[str, Mask]:
    """The same of what is turned over and combined, and of the masks of papers on sparse attention."""
    return {
        "~causal": ~Causal(),
        "~padding": ~Padding(lengths),
        "(~blocks & causal) | prefix": (~Blocks(size) & Causal()) | Prefix(1),
        "turns": Turns(HEADS, Window(2), Padding(lengths), Causal()) & Prefix(5),
        "strided": Strided(HEADS, 3),
        "causal & strided": Strided(HEADS, 2) & Causal(),
        "strided of one head": Strided(1, 3),
        "fixed": Fixed(3, summary=2),
        "causal & longformer": Longformer(2, everywhere=2) & Causal(),
        "bigbird": BigBird(2, links=1),
        "axial": Axial(HEADS, 3) & Padding(lengths),
        "causal & local": Local(2, memory=3) & Causal(),
        "local of two dimensions": Local2D(2, row=3, memory=1),
        "multiscale": MultiScale(HEADS, 1),
    }


FEW = ("none", "buckets", "table of two axes")  # of the biases, where a law asks for many other things
BIASES: dict[str, Callable[[], Bias | None]] = {
    "none": lambda: None,
    "alibi": lambda: ALiBi(HEADS),
    "buckets": lambda: Buckets(HEADS, buckets=8, farthest=6),
    "buckets one way": lambda: Buckets(HEADS, buckets=4, farthest=5, both_ways=False),
    "table": lambda: Table(HEADS, (9,)),
    "table of two axes": lambda: Table(HEADS, (3, 3)),
    "alibi of one head for all": lambda: ALiBi(1),
    "table of one head for all": lambda: Table(1, (9,)),
}
PLAIN = tuple(BIASES)  # those that softmax is asked about with everything
BIASES |= {  # and whatever else a word names
    word: partial(part_words.choose, "bias", word, part_tables.BIASES, heads=HEADS, length=LONGEST)
    for word in part_tables.BIASES
    if word not in BIASES
}


def itself(mask: Mask, bias: Bias | None) -> Sight:
    """A sequence on itself."""
    return mask.over(torch.empty(BATCH, LENGTH), bias=bias)


def another(mask: Mask, bias: Bias | None) -> Sight:
    """Rows on another sequence."""
    return mask.across(torch.empty(BATCH, LENGTH), torch.tensor([[2, 0, 6, 4, 4]]), bias)


def scattered_sight(mask: Mask, bias: Bias | None) -> Sight:
    """Rows and columns that stand elsewhere in each sequence, some columns not written."""
    places = torch.stack([torch.randperm(LENGTH, generator=torch.Generator().manual_seed(b)) for b in range(BATCH)])
    return Sight(mask, places[:, 2:], places.flip(0).masked_fill(places == 3, -1), BATCH, bias)


def sight_on_memory(mask: Mask, bias: Bias | None) -> Sight:
    """Rows on what a KV cache of fixed shape holds, and on themselves."""
    memory = FixedMemory(LENGTH + 2)
    memory.sight(mask, torch.empty(BATCH, 4), bias)
    return memory.sight(mask, torch.empty(BATCH, LENGTH - 4), bias)


SIGHTS: dict[str, Callable[[Mask, Bias | None], Sight]] = {
    "itself": itself,
    "another": another,
    "scattered": scattered_sight,
    "remembered": sight_on_memory,
}
