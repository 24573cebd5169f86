"""Every mask against its definition in plain Python, pair by pair, and every mask and bias among the cases."""

import pytest
import torch

from heedful.attention import Axial, Bias, Causal, Everything, Mask, Padding, Strided, Table, Window
from heedful.attention.biases.beit_table import ClassTable, Ways
from heedful.attention.grid.gated_positional import Places
from heedful.attention.masks import sparse
from heedful.attention.masks.bigbird import random_block
from heedful.blocks.stacks.bp import Spans
from heedful.models import part_tables
from heedful.testing import mask_laws as laws
from tests.laws import cases
from tests.laws.cases import BATCH, BIASES, HEADS, LENGTH, SIGHTS, masks

LENGTHS, IDS, SIZE = [7, 4, 0], masks()["documents"].ids.tolist(), 3
LAYOUT = [[1, 0, 1], [0, 0, 0], [1, 1, 0]]
HELD = {name: mask.seen.tolist() for name, mask in masks().items() if hasattr(mask, "seen")}
HELD["given for all"] = masks()["given for all"].one.seen.tolist()


def linked(one: int, two: int) -> bool:
    """Blocks that are near, or one of them the first, or linked by chance."""
    former, later = sorted((one, two))
    return later - former < 2 or former == 0 or former == int(random_block(torch.tensor(later), 0))


def around(i: int) -> list[int]:
    """On a grid with rows of three, the square of two by two, a row above it and a column on both its sides."""
    down, right = i // 3 // 2 * 2, i % 3 // 2 * 2
    return [3 * y + x for y in range(down - 1, down + 2) for x in range(right - 1, right + 3) if 0 <= x < 3]


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
    "turns": lambda b, h, i, j: [abs(i - j) < 2, j < LENGTHS[b], j <= i][h % 3] and j < 5,
    "strided": lambda b, h, i, j: [-3 < i - j < 3, i % 3 == j % 3][h % 2],
    "causal & strided": lambda b, h, i, j: j in (i, i - 1) if h % 2 == 0 else j in range(i % 2, i + 1, 2),
    "strided of one head": lambda b, h, i, j: -3 < i - j < 3 or i % 3 == j % 3,
    "fixed": lambda b, h, i, j: i // 3 == j // 3 or j % 3 in (1, 2),
    "causal & longformer": lambda b, h, i, j: j <= i and (i - j < 2 or i < 2 or j < 2),
    "bigbird": lambda b, h, i, j: linked(i // 2, j // 2),
    "axial": lambda b, h, i, j: [i // 3 == j // 3, i % 3 == j % 3][h % 2] and j < LENGTHS[b],
    "causal & local": lambda b, h, i, j: i - i % 2 - 3 <= j <= i,
    "local of two dimensions": lambda b, h, i, j: j in around(i),
    "multiscale": lambda b, h, i, j: abs(i - j) < 2**h,
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
    laws.take_sequences(masks()[name])


@pytest.mark.parametrize("name", masks())
def test_what_is_seen_is_near_and_an_order_is_one(name, monkeypatch):
    """What helps speed alone is true: columns that are not near are seen by no row, and every row has one place."""
    monkeypatch.setattr(sparse, "FEW", 0)
    laws.near_and_order(masks(laws.LONG)[name])


@pytest.mark.parametrize("name", masks())
def test_a_mask_says_of_a_pair_what_it_says_of_it_among_all(name):
    laws.pair_by_pair(masks()[name])


@pytest.mark.parametrize("name", [name for name, made in BIASES.items() if made() is not None])
def test_a_bias_says_of_a_pair_what_it_says_of_it_among_all(name):
    laws.pair_by_pair(BIASES[name]().double())


def test_blocks_linked_by_chance_are_few_and_anywhere():
    later = torch.arange(2, 500)
    share = torch.stack([random_block(later, number) / later for number in range(2)])
    assert (share < 1).all() and (share >= 0).all()
    assert torch.allclose(share.mean(1), torch.tensor(0.5), atol=0.05)
    assert (share[0] == share[1]).float().mean() < 0.05


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


OWN = {Spans, Places, ClassTable, Ways}  # of one stack or attention alone, and tested with it


def ours(parent: type) -> set[type]:
    return {kind for kind in kinds(parent) if kind.__module__.startswith("heedful.")} - OWN


def parts(mask: Mask) -> set[type]:
    held = [part for part in vars(mask).values() if isinstance(part, Mask)]
    inner = [*held, *getattr(mask, "masks", ())]
    return {type(mask)}.union(*(parts(part) for part in inner))


def test_every_mask_is_among_the_cases():
    assert set(masks()) == set(PLAIN)
    assert ours(Mask) == set().union(*(parts(mask) for mask in masks().values()))
    assert set(part_tables.MASKS.values()) <= ours(Mask)


def test_every_bias_is_among_the_cases():
    used = {type(make()) for make in BIASES.values()}
    part = {type(Table(1, (2, 2)).within((1, 2)))}  # of a table: held to transformers in tests/references/test_swin.py
    assert ours(Bias) - part == used - {type(None)}
    assert set(part_tables.BIASES.values()) - {None} <= used


def test_every_mechanism_has_a_word():
    from heedful.attention import mechanisms

    offered = {getattr(mechanisms, name) for name in mechanisms.__all__} - {mechanisms.Mechanism}
    assert offered <= {part_tables.MECHANISMS[word] for word in cases.MECHANISMS}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("local(size=4, memory=-8)", "memory=-8 is less than none"),
        ("local2d(size=4, memory=-5)", "memory=-5 is less than none"),
        ("bigbird(size=4, links=-1)", "links=-1 is less than none"),
        ("bigbird(size=4, everywhere=-1)", "everywhere=-1 is less than none"),
        ("longformer(size=4, everywhere=-3)", "everywhere=-3 is less than none"),
        ("fixed(size=4, summary=9)", "a summary of 9 is more than a block of 4"),
    ],
)
def test_numbers_that_no_mask_can_have_are_refused(word, said):
    with pytest.raises(ValueError, match=said):
        part_tables.mask(word, 2)


@pytest.mark.parametrize("kind", [Strided, Axial])
def test_one_head_alone_sees_what_two_would_see_by_turns(kind):
    x = torch.empty(1, 11)
    one, two = kind(1, 3).over(x).dense, kind(2, 3).over(x).dense
    assert torch.equal(one[0, 0], two[0].any(0))
    assert not two[0].all(0).all(), "half of what two heads see is lost to one that takes one of their turns"
