"""The laws of masks and biases: each says of a pair of positions what it says of that pair among all others."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from heedful.attention import Bias, Everything, Mask
from heedful.attention.card import Card
from heedful.attention.mechanisms import Softmax
from heedful.models import part_words
from heedful.testing.attention_cases import stir
from heedful.testing.broken_law import BrokenLaw, law
from heedful.testing.toy_masks import BATCH, EXACT, HEADS, KEY, LENGTH, LONGEST

LONG = 41  # rows, of which a mask may say where it is fast


def positions(length: int = LENGTH) -> tuple[Tensor, ...]:
    """Sequences, heads, rows and columns, at shapes that broadcast."""
    b, h, i = torch.arange(BATCH), torch.arange(HEADS), torch.arange(length)
    return b[:, None, None, None], h[:, None, None], i[:, None], i


def pair_by_pair(one: Mask | Bias) -> None:
    """What is said of a pair of positions does not depend on which others are asked about with it."""
    says = one.sees if isinstance(one, Mask) else one.adds
    whole = says(*positions()).expand(BATCH, HEADS, LENGTH, LENGTH)
    assert isinstance(one, Bias) or whole.dtype == torch.bool, f"it says {whole.dtype} and no booleans"
    assert isinstance(one, Mask) or whole.isfinite().all(), "what it adds is not finite; hiding is a mask's business"
    for i in range(LENGTH):
        for j in range(LENGTH):
            b, h, _, _ = positions()
            alone = says(b, h, torch.tensor([[[[i]]]]), torch.tensor([[[[j]]]]))
            alone = alone.expand(BATCH, HEADS, 1, 1)[..., 0, 0]
            assert torch.equal(alone, whole[:, :, i, j]), f"row {i} and column {j} alone are not as among all"


def take_sequences(mask: Mask) -> None:
    """A mask taken speaks of the sequences taken, as when beams are reordered."""
    index = torch.tensor([2, 0, 0, 1])
    one = mask.take(index).over(torch.empty(4, LENGTH)).dense.expand(4, HEADS, LENGTH, LENGTH)
    whole = mask.over(torch.empty(BATCH, LENGTH)).dense.expand(BATCH, HEADS, LENGTH, LENGTH)
    assert torch.equal(one, whole[index])


def near_and_order(mask: Mask, length: int = LONG) -> None:
    """What helps speed alone is true: columns that are not near are seen by no row, and every row has one place."""
    for turn in mask.turns():
        seen = turn.over(torch.empty(BATCH, length)).dense.expand(BATCH, -1, length, length)
        order = turn.order(length)
        for moved in (order, turn.gathered(length)):
            assert moved is None or torch.equal(moved.sort().values, torch.arange(length)), "an order names all once"
        for rows in (torch.arange(length) if order is None else order).split(6):
            near = turn.near(rows, length)
            if near is not None:
                assert near.min() >= 0 and near.max() < length and len(near.unique()) == len(near)
                far = torch.ones(length, dtype=torch.bool)
                far[near] = False
                assert not seen[:, :, rows][..., far].any(), "a row sees a column that is not said to be near"


def softmax_within(mask: Mask, bias: Bias | None = None) -> None:
    """Softmax within a mask, and with a bias, is its own definition."""
    coins = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, KEY, generator=coins, dtype=torch.float64) for _ in range(3))
    sight, m = mask.over(torch.empty(BATCH, LENGTH), bias=bias), Softmax()
    torch.testing.assert_close(m(q, k, v, sight), m.weights(q, k, sight) @ v, **EXACT)


def toy_part(kind: type, what: str) -> Any:
    """A mask or a bias at toy size, as a model makes it of its word."""
    takes = part_words.arguments(kind)
    needed = [name for name, one in takes.items() if one.default is inspect.Parameter.empty and name != "heads"]
    word = f"part({', '.join(f'{name}=3' for name in needed if name != 'length')})"
    return part_words.choose(what, word, {"part": kind}, heads=HEADS, length=LONGEST)


def check_mask(name: str, kind: type[Mask]) -> None:
    """Holds a mask to every law."""
    if not isinstance(getattr(kind, "card", None), Card):
        raise BrokenLaw(f"{name} has no card; say whose it is and what it costs: card = Card(paper, year, cost)")
    with law(name, "a model makes it of its word, with 3 for each number that it needs"):
        mask: Mask = toy_part(kind, "mechanism")
    with law(name, "it says of a pair what it says of that pair among all"):
        pair_by_pair(mask)
    with law(name, "a mask taken speaks of the sequences taken"):
        take_sequences(mask)
    with law(name, "what helps speed alone is true"):
        near_and_order(mask)
    with law(name, "softmax within it is its own definition"):
        softmax_within(mask)


def check_bias(name: str, kind: type[Bias]) -> None:
    """Holds a bias to every law."""
    with law(name, "a model makes it of its word, with 3 for each number that it needs"):
        bias: Bias = stir(toy_part(kind, "bias")).double()
    with law(name, "it says of a pair what it says of that pair among all"):
        pair_by_pair(bias)
    with law(name, "softmax with it is its own definition"):
        softmax_within(Everything(), bias)
