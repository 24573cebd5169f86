"""A sight is lowered once for all layers, shared by layers with biases of their own, and forgets what it lowered."""

import weakref
from collections import Counter

import pytest
import torch
from torch import nn

from heedful.attention import (
    Bias,
    Blocks,
    Buckets,
    Causal,
    Given,
    Mask,
    Padding,
    Rotary,
    Sight,
    Strided,
    Window,
    lowering_cache,
)
from heedful.attention.masks.parts import Every
from heedful.attention.order import Order
from heedful.models import part_tables, part_words
from tests.laws import cases, families
from tests.laws.cases import BATCH, BIASES, EXACT, HEADS, LENGTH, MECHANISMS, Case, stack, states


class Counted(Mask):
    """Another mask, and how often it was asked."""

    def __init__(self, mask: Mask) -> None:
        self.mask, self.batch, self.heads, self.asked = mask, mask.batch, mask.heads, 0

    def sees(self, b, h, i, j):
        self.asked += 1
        return self.mask.sees(b, h, i, j)


class CountedBias(Buckets):
    asked = 0

    def adds(self, b, h, i, j):
        self.asked += 1
        return super().adds(b, h, i, j)


@pytest.mark.parametrize("word", MECHANISMS)
def test_a_deep_stack_lowers_its_sight_once(word):
    for case in cases.cases(word, mask=cases.masks(), bias=["buckets"], groups=[2]):
        counted, bias = Counted(cases.masks()[case.mask]), CountedBias(HEADS).double()
        x = states()
        stack(word, position=Rotary(), depth=5)(x, counted.over(x, bias=bias))
        assert counted.asked <= 1, case
        assert bias.asked <= 1, case


@pytest.mark.parametrize(("name", "word"), families.PAIRS)
def test_a_deep_model_lowers_each_sight_once(name, word, monkeypatch):
    def asked(depth):
        calls = Counter()
        with monkeypatch.context() as patch:
            for kind in (Padding, Causal, *part_tables.MASKS.values(), Buckets):
                what = "adds" if issubclass(kind, Bias) else "sees"
                sees = getattr(kind, what)
                patch.setattr(kind, what, lambda self, *at, s=sees, n=kind.__name__: calls.update([n]) or s(self, *at))
            families.model(name, word, depth=depth, bias="buckets", position="rotary")(*families.together(name))
        return calls

    if not families.obeys(word, name, "bias buckets"):
        pytest.skip("refused, as the golden table says")
    shallow, deep = asked(1), asked(4)
    assert shallow == deep
    sights = (
        (2, 1, 2) if name in families.WRITERS else {"forecaster": (0, 1, 1)}.get(name, (1, 0, 1))
    )  # of each stack and each context
    assert (deep["Padding"], deep["Causal"], deep["Buckets"]) <= sights
    inner = [kind.__name__ for kind in part_tables.MASKS.values() if part_words.parse(word)[0] == kind.__name__.lower()]
    assert all(deep[kind] == (2 if name in families.WRITERS else 1) for kind in inner)


def test_an_exactly_causal_softmax_lowers_nothing():
    counted = []
    causal = Causal().over(states())
    causal._dense = lambda: counted.append("dense")
    with torch.no_grad():
        stack("softmax", depth=3)(states(), causal)
    assert not counted
    assert not causal._made


@pytest.mark.parametrize("name", cases.masks())
def test_a_bias_of_ones_own_shares_the_lowered_mask(name):
    counted = Counted(cases.masks()[name])
    sight = counted.over(torch.empty(BATCH, LENGTH))
    biases = [BIASES[bias]().double() for bias in ("alibi", "table", "buckets")]
    others = [sight.plus(bias) for bias in biases]
    assert counted.asked == 0, "nothing is lowered before it is asked for"
    for other, bias in zip(others, biases, strict=True):
        alone = cases.masks()[name].over(torch.empty(BATCH, LENGTH), bias=bias)
        torch.testing.assert_close(other.added(torch.float64), alone.added(torch.float64), **EXACT)
        assert (other.bias, other.rows, other.columns) == (bias, sight.rows, sight.columns)
        assert other.heads == HEADS
        for made in ("dense", "blind", "blocks"):
            assert getattr(other, made) is getattr(sight, made)
    shared = counted.asked
    assert [other.dense is sight.dense for other in others] == [True] * 3
    assert counted.asked == shared
    assert sight.bias is None
    assert sight.scores is None


def test_layers_with_tables_of_their_own_lower_their_mask_once():
    class Own(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block, self.table = block, CountedBias(HEADS).double()

        def forward(self, x, sight):
            return self.block(x, sight.plus(self.table))

    layers, counted = [Own(block) for block in stack("softmax", depth=4).blocks], Counted(Causal())
    x = states()
    sight = counted.over(x)
    for layer in layers:
        x = layer(x, sight)
    assert counted.asked == 1
    assert [layer.table.asked for layer in layers] == [1] * 4


@pytest.mark.parametrize("name", cases.masks())
def test_a_sight_at_a_few_rows_is_those_rows(name):
    rows = torch.tensor([2, 0, -1])
    for bias in BIASES:
        for kind in cases.SIGHTS:
            sight = Case(name, bias, sight=kind).seen()
            few, all_of = sight.at(rows), (BATCH, HEADS, sight.rows.shape[-1], sight.columns.shape[-1])
            shape = (BATCH, HEADS, 3, all_of[-1])
            assert torch.equal(few.dense.expand(shape), sight.dense.expand(all_of)[:, :, rows])
            if sight.scores is not None:
                assert torch.equal(few.scores.expand(shape), sight.scores.expand(all_of)[:, :, rows])


def test_a_sight_afresh_is_the_same_with_nothing_made():
    sight = Case("given for all", "table", sight="itself").seen()
    sight.order = Order(torch.arange(LENGTH))
    before = sight.added(torch.float64)
    other = sight.afresh()
    assert sight._made
    assert sight._added
    assert not other._made
    assert not other._added
    assert vars(other).keys() >= {"mask", "rows", "columns", "batch", "bias", "order", "counted", "heads"}
    assert all(getattr(other, name) is getattr(sight, name) for name in ("mask", "rows", "columns", "bias", "order"))
    assert (other.batch, other.counted, other.heads) == (sight.batch, sight.counted, sight.heads)
    assert torch.equal(other.added(torch.float64), before)


def test_once_is_made_by_the_first_and_kept_for_the_rest():
    sight, calls = Causal().over(torch.empty(1, 4)), []
    assert [sight.once("a", lambda: calls.append("a") or len(calls)) for _ in range(3)] == [1, 1, 1]
    assert sight.once("b", lambda: 7) == 7


def test_rotary_angles_are_made_once_for_a_forward_and_anew_for_the_next(monkeypatch):
    made = []
    turns = Rotary.turns
    monkeypatch.setattr(Rotary, "turns", lambda *given: made.append(given[2:]) or turns(*given))
    blocks, x = stack("softmax", position=Rotary(), depth=4), states()
    blocks(x, Causal().over(x))
    assert len(made) == 1
    blocks(x, Causal().over(x))
    assert len(made) == 2


def test_a_mask_of_heads_and_a_bias_speak_of_the_same_heads():
    seen = torch.ones(1, HEADS, LENGTH, LENGTH, dtype=torch.bool)
    assert Given(seen).over(torch.empty(2, LENGTH), bias=BIASES["alibi"]()).heads == HEADS
    assert Given(seen).over(torch.empty(2, LENGTH), bias=BIASES["alibi of one head for all"]()).heads == HEADS
    assert Sight(Causal(), torch.zeros(1, 1), torch.zeros(1, 1), 2, BIASES["alibi"]()).heads == HEADS


def test_a_lowered_mask_lasts_where_it_follows_from_numbers_alone():
    def lowered(mask, length=LENGTH):
        return mask.over(torch.empty(2, length)).blocks

    assert lowered(Window(3) & Causal()) is lowered(Window(3) & Causal())
    assert lowered(Window(3) & Causal()) is not lowered(Window(4) & Causal())
    assert lowered(Window(3) & Causal()) is not lowered(Window(3) | Causal())
    assert lowered(Window(3)) is not lowered(Window(3), LENGTH + 1)
    assert lowered(Strided(2, 3) & Causal()) is lowered(Strided(2, 3) & Causal())
    lengths = torch.tensor([2, 3])
    assert lowered(Window(3) & Padding(lengths)) is not lowered(Window(3) & Padding(lengths))
    ordered = Window(3).over(torch.empty(2, LENGTH))
    ordered.order = Order(torch.arange(LENGTH).flip(0))
    assert ordered.blocks is not lowered(Window(3))
    assert lowered(Blocks(2)) is lowered(Blocks(2))
    layout = torch.ones(LENGTH, LENGTH, dtype=torch.bool)
    assert lowered(Blocks(2, layout)) is not lowered(Blocks(2, layout))


def test_what_lasts_of_one_mask_is_not_served_to_another():
    def blocks(mask):
        return int(mask.over(torch.empty(1, 512)).blocks.to_dense().sum())

    own = Near(torch.tensor(1))
    masks = (Blocks(64), Blocks(256), own, Padding(torch.tensor([512])), Blocks(128) & Padding(torch.tensor([300])))
    assert [blocks(mask) for mask in masks] == [4, 8, 4, 16, 3]


class Near(Mask):
    """Blocks of 128 that a tensor tells of, and not numbers."""

    def __init__(self, blocks):
        self.blocks = blocks

    def sees(self, b, h, i, j):
        return (i // 128 - j // 128).abs() < self.blocks

    def near(self, rows, length):
        return torch.arange(int(rows.min()) // 128 * 128, min(length, (int(rows.max()) // 128 + 1) * 128))

    def order(self, length):
        return torch.arange(length).flip(0)


def test_an_order_that_a_tensor_tells_does_not_last():
    def turn():
        [turn] = (Window(3) & Near(torch.tensor(1))).over(torch.empty(1, 300)).turns
        return turn

    assert turn().order is not None
    assert turn().order is not turn().order
    assert not turn().laid


def test_what_lasts_serves_a_larger_batch_and_whoever_learns_after_a_text_was_written():
    with torch.inference_mode():
        few = Strided(2, 3).over(torch.empty(2, LENGTH)).turns[1]
        assert not few.blocks.kv_indices.is_inference() and not few.order.at.is_inference()
    many = Strided(2, 3).over(torch.empty(8, LENGTH)).turns[1]
    assert many.blocks is few.blocks
    assert many.blocks.mask_mod(*(torch.tensor(n) for n in (7, 0, 2, 2)))


def test_what_was_asked_for_least_lately_lasts_no_longer(monkeypatch):
    monkeypatch.setattr(lowering_cache, "LASTING", {})
    monkeypatch.setattr(lowering_cache, "MOST", 2)

    def lowered(size):
        return Window(size).over(torch.empty(1, LENGTH)).blocks

    first, second = lowered(1), lowered(2)
    assert lowered(1) is first
    lowered(3)
    assert lowered(1) is first
    assert lowered(2) is not second
    assert len(lowering_cache.LASTING) == 2


def test_an_order_is_asked_for_once_for_all_forwards(monkeypatch):
    asked, order = [], Every.order
    monkeypatch.setattr(lowering_cache, "LASTING", {})
    monkeypatch.setattr(Every, "order", lambda mask, length: asked.append(length) or order(mask, length))
    for lengths in (torch.tensor([LENGTH, 3]), torch.tensor([2, LENGTH])):
        for mask in (Strided(2, 3), Strided(2, 3) & Padding(lengths)):
            assert mask.over(torch.empty(2, LENGTH)).turns[1].order is not None
    assert asked == [LENGTH]


def test_heads_by_turns_and_in_order_keep_each_layers_bias():
    sight, biases = Every(3).over(torch.empty(2, LENGTH)), [BIASES["alibi"](), BIASES["buckets"]()]
    turns = [sight.plus(bias).turns for bias in biases]
    assert [turn.bias for [turn] in turns] == biases
    assert turns[0][0].blocks is turns[1][0].blocks
    assert turns[0][0].dense is turns[1][0].dense


@pytest.mark.parametrize("mask", [Window(3), Strided(2, 3)])
def test_a_sight_is_gone_when_its_forward_is(mask):
    sight = mask.over(torch.empty(2, LENGTH))
    assert sight.turns[0].blocks is not None
    gone = weakref.ref(sight)
    del sight
    assert gone() is None, "a sight that holds itself keeps a GPU's memory until Python collects what is in circles"
