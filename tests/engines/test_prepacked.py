"""Packed matrices: the same products, only while a model writes, and never of weights that have changed since."""

import contextlib
import copy
import gc
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from heedful import look
from heedful.decoding.steps import answering
from heedful.engines import prepacked, refresh, runner
from heedful.engines.prepacked import Packed, made
from heedful.errors import Refusal
from heedful.models import Transformer, build
from tests.decoding.toys import beam, greedy, sharpened, sources

WIDE = 512  # so that 256 rows of it are worth packing
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32, sums of 512 products


def layer(columns: int = WIDE, rows: int = 256, bias: bool = True, seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(columns, rows, bias=bias)


def writer(seed: int = 0, **words) -> Transformer:
    """An encoder-decoder in float32, all of whose matrices are worth packing but for one."""
    torch.manual_seed(seed)
    numbers = {"vocab": 300, "width": WIDE, "heads": 2, "depth": 1, "hidden": 256} | words
    return sharpened(build("transformer", **numbers)).eval()


@pytest.fixture
def multiplied(monkeypatch) -> list[Tensor]:
    """The packed matrices that products were made by, in turn."""
    by: list[Tensor] = []
    product = prepacked.product
    monkeypatch.setattr(prepacked, "product", lambda x, w, bias: (by.append(w), product(x, w, bias))[1])
    return by


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=0, max_size=3), st.booleans(), st.integers(0, 99), st.booleans())
def test_packed_products_are_products(shape, bias, seed, strided):
    one = layer(bias=bias, seed=seed)
    x = torch.randn(*shape, 2 * WIDE)[..., ::2] if strided else torch.randn(*shape, WIDE)
    with torch.no_grad():
        plain = one(x)
        fast = runner(one)
        assert isinstance(fast.weight, Packed)
        assert fast(x).shape == plain.shape
        torch.testing.assert_close(fast(x), plain, **CLOSE)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.booleans(), st.integers(0, 99))
def test_products_by_halves_are_those_of_rounded_weights(shape, bias, seed):
    one, x = layer(bias=bias, seed=seed), torch.randn(*shape, WIDE)
    with torch.no_grad():
        rounded = copy.deepcopy(one)
        rounded.weight.copy_(one.weight.half())
        halves = runner(one, "float16")(x)
        torch.testing.assert_close(halves, rounded(x), **CLOSE)
        assert not torch.equal(runner(one)(x), halves)  # one way does not stand in the other's place


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.booleans(), st.integers(0, 99))
def test_under_autocast_products_are_those_that_autocast_makes(shape, bias, seed):
    one, x = layer(bias=bias, seed=seed), torch.randn(*shape, WIDE)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        plain = one(x)
        fast = runner(one)
        found = fast(x)
        assert "low" in vars(fast.weight) and "copy" not in vars(fast.weight)
    assert found.dtype == plain.dtype == torch.bfloat16
    torch.testing.assert_close(found, plain, rtol=2**-7, atol=2**-7)


def test_a_weight_too_large_to_be_rounded_is_packed_as_it_is():
    one = layer()
    with torch.no_grad():
        one.weight[0, 0] = 1e6
        plain = one(torch.ones(1, WIDE))
        torch.testing.assert_close(runner(one, "float16")(torch.ones(1, WIDE)), plain, **CLOSE)


@pytest.mark.parametrize("other", [torch.float64, torch.bfloat16])
def test_halves_are_refused_where_they_cannot_be_had(other):
    with pytest.raises(Refusal, match="weights='float16' packs a model of float32 on a CPU"):
        runner(layer().to(other), "float16")
    compiled = layer()
    compiled.compile(backend="eager")
    with pytest.raises(Refusal, match="not compiled"):
        runner(compiled, "float16")


def test_nothing_of_nothing_is_nothing():
    one = layer()
    with torch.no_grad():
        assert runner(one)(torch.zeros(0, 3, WIDE)).shape == (0, 3, 256)


@pytest.mark.parametrize(
    "one",
    [layer().double(), layer().bfloat16(), layer(64, 64), layer(511, 300), layer().to("meta")],
    ids=["float64", "bfloat16", "small", "odd", "elsewhere"],
)
def test_what_would_not_gain_or_not_be_the_same_goes_unpacked(one):
    assert runner(one) is one


def test_a_writer_multiplies_by_every_large_matrix_packed_and_gives_the_same_answers(multiplied):
    model, source = writer(), sources(vocab=300)
    fast = greedy(model, source, 5)
    large = [part for part in model.modules() if isinstance(part, nn.Linear)]
    assert all(part.weight.numel() >= prepacked.WORTHWHILE for part in large)
    assert model.outputs.matrix in large and model.decoder.blocks[0].cross.join in large
    assert {id(by) for by in multiplied} == {id(made[part.weight][1]["float32"]) for part in large}
    multiplied.clear()
    slow = [answer for one in beam(model.double(), source, 1, 1, 5) for answer in one]
    assert not multiplied
    assert [one.tokens for one in fast] == [one.tokens for one in slow]
    assert [one.score for one in fast] == pytest.approx([one.score for one in slow], abs=1e-3)


def test_nothing_of_it_is_left_afterwards():
    model = writer()
    kept, structure = pickle.dumps(model.state_dict()), repr(model)
    greedy(model, sources(vocab=300), 3)
    with answering(model):
        assert pickle.dumps(model.state_dict()) == kept
    with pytest.raises(IndexError):
        greedy(model, torch.full((1, 3), 999), 3)
    assert not any("weight" in vars(part) for part in model.modules())
    assert pickle.dumps(model.state_dict()) == kept
    assert repr(model) == structure
    copy.deepcopy(model)


def by_itself(model: nn.Linear) -> None:
    model.weight.mul_(2)


def through_data(model: nn.Linear) -> None:
    model.weight.data.mul_(2)


def one_number_through_data(model: nn.Linear) -> None:
    model.weight.data[3, 5] += 1


def put_in_its_place(model: nn.Linear) -> None:
    model.weight.data = model.weight * 2


def turned_round(model: nn.Linear) -> None:
    model.weight.copy_(model.weight.flip(0))


def turned_round_in_another_place(model: nn.Linear) -> None:
    model.weight.data = model.weight.flip(0)


def a_new_parameter(model: nn.Linear) -> None:
    model.weight = nn.Parameter(model.weight * 2)


def loaded(model: nn.Linear) -> None:
    model.load_state_dict({name: tensor * 2 for name, tensor in model.state_dict().items()})


def learned(model: nn.Linear, **kind: bool) -> None:
    with torch.enable_grad():
        model(torch.ones(1, WIDE)).sum().backward()
    torch.optim.AdamW(model.parameters(), lr=0.1, **kind).step()


def learned_at_once(model: nn.Linear) -> None:
    learned(model, fused=True)


CHANGES = [
    by_itself,
    through_data,
    one_number_through_data,
    put_in_its_place,
    turned_round,
    turned_round_in_another_place,
    a_new_parameter,
    loaded,
    learned,
    learned_at_once,
]


@pytest.mark.parametrize("change", [*CHANGES[:2], *CHANGES[3:]])
@torch.no_grad()
def test_whoever_learns_between_two_tokens_is_found_out_by_a_sample(change):
    one, x = layer(), torch.ones(5, WIDE)
    fast = runner(one)
    before = fast(x)
    change(one)
    after = one(x)
    assert (after - before).abs().max() > 0.1
    refresh([fast])
    assert isinstance(fast.weight, Packed)
    torch.testing.assert_close(fast(x), after, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("change", CHANGES)
@torch.no_grad()
def test_a_weight_that_has_changed_is_packed_again(change):
    one, x = layer(), torch.ones(5, WIDE)
    before = runner(one)(x)
    change(one)
    after = one(x)
    assert (after - before).abs().max() > 0.1
    torch.testing.assert_close(runner(one)(x), after, rtol=1e-4, atol=1e-4)


def test_a_weight_that_has_not_changed_is_packed_once(monkeypatch):
    calls, pack = [], Packed.of
    monkeypatch.setattr(Packed, "of", lambda weight, *how: calls.append(weight) or pack(weight, *how))
    model = writer()
    for _ in range(3):
        greedy(model, sources(vocab=300), 3)
    assert len(calls) == len({id(one) for one in calls}) == sum(isinstance(p, nn.Linear) for p in model.modules())


def test_what_is_packed_goes_with_its_parameter():
    gc.collect()
    before, one = len(made), layer()
    runner(one)
    assert len(made) == before + 1
    del one
    gc.collect()
    assert len(made) == before


def gradients(model: Transformer) -> list[Tensor]:
    model.zero_grad()
    model(sources(vocab=300), torch.ones(7, 4, dtype=torch.long)).square().mean().backward()
    return [p.grad.clone() for p in model.parameters()]


def test_learning_after_writing_is_as_before_it(multiplied):
    model = writer()
    before = gradients(model)
    greedy(model, sources(vocab=300), 3)
    multiplied.clear()
    assert all(torch.equal(*pair) for pair in zip(gradients(model), before, strict=True))
    with answering(model) as running, torch.enable_grad():  # as between two words of an answer that is streamed
        assert all(torch.equal(*pair) for pair in zip(gradients(running), before, strict=True))
    assert not multiplied


def test_lower_precision_is_left_to_autocast(multiplied):
    one = layer()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert runner(one)(torch.ones(5, WIDE)).dtype == torch.bfloat16
    assert not multiplied


def test_a_compiled_model_goes_unpacked():
    one = layer()
    one.compile(backend="eager")
    assert runner(one) is one


@pytest.mark.parametrize("weights", ["float32", "float16"])
def test_what_runs_a_model_is_run_by_nothing_more(weights):
    model = build("gpt", vocab=20, width=WIDE, heads=2, depth=1, hidden=256)
    fast = runner(model, weights)
    assert fast is not model and runner(fast) is fast and runner(fast, weights) is fast


@pytest.mark.parametrize("mechanism", ["softmax", "general", "additive"])
def test_looking_at_a_search_changes_nothing_and_can_be_reckoned_with(mechanism):
    model, source = writer(mechanism=mechanism, width=256, hidden=512), sources(vocab=300)
    for search in (greedy, beam):
        alone = search(model, source, max_new_tokens=4)
        with look(model) as seen:
            assert search(model, source, max_new_tokens=4) == alone
        weights = seen.weights("decoder.blocks.0.attention")
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


@pytest.mark.parametrize("before", [True, False])
def test_who_answers_goes_without_plans_and_leaves_all_as_it_was(before):
    model = writer()
    old = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(before)
    try:
        with contextlib.suppress(KeyError), answering(model):
            assert not torch.backends.cuda.cudnn_sdp_enabled()
            raise KeyError
        assert torch.backends.cuda.cudnn_sdp_enabled() is before
    finally:
        torch.backends.cuda.enable_cudnn_sdp(old)
