"""Every mask against its definition in plain Python, pair by pair, and every mask and bias among the cases."""

import pytest
import torch

from heedful.attention import Bias, Causal, Everything, Mask, Padding, Window
from heedful.models import words
from tests.laws import cases
from tests.laws.cases import BATCH, BIASES, HEADS, LENGTH, SIGHTS, masks

LENGTHS, IDS, SIZE = [7, 4, 0], masks()["documents"].ids.tolist(), 3
LAYOUT = [[1, 0, 1], [0, 0, 0], [1, 1, 0]]
HELD = {name: mask.seen.tolist() for name, mask in masks().items() if hasattr(mask, "seen")}
HELD["given for all"] = masks()["given for all"].one.seen.tolist()

PLAIN = {
    "everything": lambda b, h, i, j: True,
    "causal": lambda b, h, i, j: j <= i,
    "window": lambda b, h, i, j: -3 < i - j < 3,
    "causal & window": lambda b, h, i, j: j in (i, i - 1),
    "padding": lambda b, h, i, j: j < LENGTHS[b],
    "one length for all": lambda b, h, i, j: j < 5,
    "causal & padding": lambda b, h, i, j: j <= i and j < LENGTHS[b],
    "causal | prefix": lambda b, h, i, j: j <= i or j < 3,
    "causal | prefixes": lambda b, h, i, j: j <= i or j < [0, 2, 3][b],
    "documents": lambda b, h, i, j: IDS[b][i] == IDS[b][j],
    "causal & documents of one": lambda b, h, i, j: j <= i and IDS[0][i] == IDS[0][j],
    "blocks": lambda b, h, i, j: i // SIZE == j // SIZE,
    "blocks with a layout": lambda b, h, i, j: LAYOUT[i // SIZE][j // SIZE],
    "given": lambda b, h, i, j: HELD["given"][0][0][i][j],
    "given for each sequence": lambda b, h, i, j: HELD["given for each sequence"][b][0][i][j],
    "given for each head": lambda b, h, i, j: HELD["given for each head"][0][h][i][j],
    "given for all": lambda b, h, i, j: HELD["given for all"][b][h][i][j] and j <= i,
    "~causal": lambda b, h, i, j: j > i,
    "~padding": lambda b, h, i, j: j >= LENGTHS[b],
    "window | documents": lambda b, h, i, j: abs(i - j) < 2 or IDS[b][i] == IDS[b][j],
    "(~blocks & causal) | prefix": lambda b, h, i, j: (i // SIZE != j // SIZE and j <= i) or j < 1,
}


@pytest.mark.parametrize("name", masks())
def test_a_mask_sees_what_it_says(name):
    for kind in SIGHTS.values():
        sight = kind(masks()[name], None)
        rows, columns = (x.expand(BATCH, -1).tolist() for x in (sight.rows, sight.columns))
        said = [
            [[[j >= 0 and bool(PLAIN[name](b, h, i, j)) for j in columns[b]] for i in rows[b]] for h in range(HEADS)]
            for b in range(BATCH)
        ]
        expected = torch.tensor(said)
        assert torch.equal(sight.dense.expand_as(expected), expected)
        assert torch.equal(sight.blind.expand(*expected.shape[:-1], 1), ~expected.any(-1, keepdim=True))


@pytest.mark.parametrize("name", masks())
def test_a_mask_taken_speaks_of_the_sequences_taken(name):
    mask, index = masks()[name], torch.tensor([2, 0, 0, 1])
    taken = mask.take(index).over(torch.empty(4, LENGTH)).dense.expand(4, HEADS, LENGTH, LENGTH)
    whole = mask.over(torch.empty(BATCH, LENGTH)).dense.expand(BATCH, HEADS, LENGTH, LENGTH)
    assert torch.equal(taken, whole[index])


def test_everything_leaves_the_other_mask_as_it_is():
    causal = Causal()
    assert causal & Everything() is causal
    assert Everything() & causal is causal
    both = Padding(torch.tensor(LENGTHS)) & Window(2)
    assert Everything() & both is both


def test_only_an_exactly_causal_sight_has_the_kernels_flag():
    flagged = {name for name, mask in masks().items() if mask.over(torch.empty(BATCH, LENGTH)).is_causal}
    assert flagged == {"causal"}
    assert not Causal().over(torch.empty(BATCH, LENGTH), bias=BIASES["alibi"]()).is_causal
    assert not Causal().across(torch.empty(BATCH, LENGTH), torch.arange(LENGTH)[None] + 1).is_causal
    for kind in ("another", "scattered", "remembered"):
        assert not SIGHTS[kind](Causal(), None).is_causal


def test_a_sight_that_calls_itself_open_hides_nothing():
    for mask in masks().values():
        for kind in (*SIGHTS.values(), lambda mask, bias: mask.over(torch.empty(BATCH, 1), bias=bias)):
            sight = kind(mask, None)
            assert not sight.is_open or bool(sight.dense.all())
            assert not kind(mask, BIASES["alibi"]()).is_open


def kinds(parent: type) -> set[type]:
    return {kind for child in parent.__subclasses__() for kind in ({child} | kinds(child))}


def ours(parent: type) -> set[type]:
    return {kind for kind in kinds(parent) if kind.__module__.startswith("heedful.")}


def parts(mask: Mask) -> set[type]:
    inner = (part for part in vars(mask).values() if isinstance(part, Mask))
    return {type(mask)}.union(*(parts(part) for part in inner))


def test_every_mask_is_among_the_cases():
    assert set(masks()) == set(PLAIN)
    assert ours(Mask) == set().union(*(parts(mask) for mask in masks().values()))
    assert set(words.MASKS.values()) <= ours(Mask)


def test_every_bias_is_among_the_cases():
    used = {type(make()) for make in BIASES.values()}
    assert ours(Bias) == used - {type(None)}
    assert set(words.BIASES.values()) - {None} <= used


def test_every_mechanism_has_a_word():
    from heedful.attention import mechanisms

    offered = {getattr(mechanisms, name) for name in mechanisms.__all__} - {mechanisms.Mechanism}
    assert offered == {words.MECHANISMS[word] for word in cases.MECHANISMS}
