"""The one law, forward(q, k, v, sight) == weights(q, k, sight) @ v, of every mechanism in every case."""

import operator

import hypothesis
import hypothesis.strategies as some
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from heedful.attention import Blocks, Causal, Everything, Mask, Padding, Prefix, Sight, Window
from heedful.attention.mechanisms import dpfp, running, softmax, talking
from heedful.testing import mechanism_laws as laws
from heedful.testing.mechanism_laws import by_definition
from tests.laws import cases
from tests.laws.cases import HEADS, KEY, MECHANISMS, Case, agree, everywhere, mechanism, parameters, queries_keys_values


@pytest.mark.parametrize("word", MECHANISMS)
def test_forward_is_weights_times_values(word):
    m = mechanism(word)
    for case in everywhere(word):
        laws.equation(m, case)


@pytest.mark.parametrize("word", MECHANISMS)
def test_forward_is_weights_times_values_in_the_precision_of_training(word):
    m = mechanism(word, dtype=torch.float32)
    for case in cases.cases(word, mask=cases.masks(), bias=["none", "buckets"], groups=[2], value=[KEY, cases.VALUE]):
        sight = case.seen(torch.float32)
        q, k, v = queries_keys_values(case, sight, torch.float32)
        one, two = m(q, k, v, sight), by_definition(m, q, k, v, sight)
        assert one.dtype == two.dtype == torch.float32
        agree(one, two, [q, k, v, *parameters(m, sight.bias)], case, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("word", [w for w in MECHANISMS if isinstance(mechanism(w), running.Running)])
def test_pieces_of_a_long_sequence_are_the_whole(word, monkeypatch):
    monkeypatch.setattr(running, "PIECE", 3)
    m = mechanism(word)
    for case in cases.cases(word, mask=["everything", "causal", "padding", "causal & padding"], groups=[HEADS, 2]):
        sight = case.seen()
        q, k, v = queries_keys_values(case, sight)
        agree(m(q, k, v, sight), by_definition(m, q, k, v, sight), [q, k, v, *parameters(m)], case)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("paired", [False, True])
def test_fast_weights_are_the_same_in_chunks_one_by_one_and_in_pairs(paired, count, monkeypatch):
    """On a GPU they go in pairs, of any number of chunks, which are the longer the wider features are."""
    monkeypatch.setattr(dpfp, "pays_in_pairs", lambda _: paired)
    monkeypatch.setattr(dpfp, "CHUNK", -(-cases.LENGTH // count))
    m = mechanism("dpfp")
    for case in cases.cases("dpfp", **cases.every() | {"sight": ["itself", "scattered"]}):
        sight = case.seen()
        q, k, v = queries_keys_values(case, sight)
        agree(m(q, k, v, sight), by_definition(m, q, k, v, sight), [q, k, v, *parameters(m)], case)


def test_talking_heads_are_the_same_some_rows_at_a_time(monkeypatch):
    m = mechanism("talking_heads")
    for case in everywhere("talking_heads"):
        sight = case.seen()
        q, k, v = queries_keys_values(case, sight)
        monkeypatch.setattr(talking, "AT_ONCE", 3 * sight.batch * HEADS * k.shape[2])  # 3 rows in 7
        agree(m(q, k, v, sight), by_definition(m, q, k, v, sight), [q, k, v, *parameters(m, sight.bias)], case)
        with torch.no_grad():
            torch.testing.assert_close(m(q, k, v, sight), by_definition(m, q, k, v, sight), **cases.EXACT)


def test_talking_heads_neither_make_nor_keep_all_weights_where_they_are_many(monkeypatch):
    monkeypatch.setattr(talking, "AT_ONCE", 4 * HEADS * 64)  # of 4 rows in 64

    class Making(TorchDispatchMode):
        most = 0

        def __torch_dispatch__(self, step, types, args=(), kwargs=None):
            made = step(*args, **kwargs or {})
            self.most = max([self.most, *(x.numel() for x in tree_leaves(made) if isinstance(x, torch.Tensor))])
            return made

    m, kept = mechanism("talking_heads"), []
    q, k, v = (torch.randn(1, HEADS, 64, KEY, dtype=torch.float64, requires_grad=True) for _ in range(3))
    with Making() as making:
        with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
            y = m(q, k, v, Causal().over(torch.empty(1, 64)))
        y.sum().backward()
    assert max(making.most, *kept, 0) <= 4 * HEADS * 64


@pytest.mark.parametrize("word", MECHANISMS)
def test_a_few_rows_are_those_rows_of_all(word):
    m = mechanism(word)
    for case in cases.cases(word, mask=cases.masks(), bias=cases.FEW, groups=[2], sight=cases.SIGHTS):
        laws.few_rows(m, case)


@pytest.mark.parametrize("word", [w for w in MECHANISMS if isinstance(mechanism(w), softmax.SoftmaxLike)])
def test_a_row_of_softmax_sums_to_one(word):
    m = mechanism(word)
    for case in cases.cases(word, mask=cases.masks(), bias=cases.FEW, groups=[2], sight=cases.SIGHTS):
        sight = case.seen()
        q, k, _ = queries_keys_values(case, sight)
        weights = m.weights(q, k, sight)
        expected = (~sight.blind).double().squeeze(-1).expand(weights.shape[:-1])
        torch.testing.assert_close(
            weights.sum(-1), expected, **cases.EXACT, msg=lambda text, case=case: f"{case}: {text}"
        )
        assert (weights >= 0).all(), case


def leaf(batch: int) -> some.SearchStrategy[Mask]:
    lengths = some.lists(some.integers(0, 6), min_size=batch, max_size=batch).map(torch.tensor)
    return some.one_of(
        some.sampled_from([Causal(), Everything()]),
        some.integers(1, 4).map(Window),
        some.integers(1, 4).map(Blocks),
        some.integers(0, 5).map(Prefix),
        lengths.map(Padding),
        lengths.map(Prefix),
    )


def expression(batch: int) -> some.SearchStrategy[Mask]:
    """Any mask that can be written with &, | and ~."""
    pairs = lambda inner: some.tuples(some.sampled_from([operator.and_, operator.or_]), inner, inner)  # noqa: E731
    grown = lambda inner: inner.map(operator.invert) | pairs(inner).map(lambda p: p[0](p[1], p[2]))  # noqa: E731
    return some.recursive(leaf(batch), grown, max_leaves=5)


@pytest.mark.parametrize("word", MECHANISMS)
@hypothesis.settings(max_examples=40, deadline=None, derandomize=True, database=None)
@hypothesis.given(given=some.data())
def test_the_law_holds_for_any_expression_of_masks(word, given):
    if not cases.obeys(word, *(f"mask {name}" for name in cases.masks())):
        pytest.skip("some mask is refused, as the golden table says")
    batch, rows, columns = (given.draw(some.integers(1, n)) for n in (3, 5, 6))
    mask, groups = given.draw(expression(batch)), given.draw(some.sampled_from([HEADS, 2, 1]))
    case = Case(groups=groups, value=cases.VALUE)
    hypothesis.assume(cases.obeys(word, *case.parts()))
    sight = Sight(mask, torch.arange(rows)[None], torch.arange(columns)[None], batch)
    m, (q, k, v) = mechanism(word), queries_keys_values(case, sight)
    agree(m(q, k, v, sight), by_definition(m, q, k, v, sight), [q, k, v, *parameters(m)], mask)
