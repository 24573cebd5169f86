"""What is hidden weighs nothing and learns nothing; what nobody sees is zero; the future is hidden from the past."""

import pytest
import torch

from heedful.attention import Rotary
from heedful.blocks import Block, PostNormBlock
from heedful.testing import mechanism_laws as laws
from heedful.testing.mechanism_check import causal_masks
from tests.laws import cases, families
from tests.laws.cases import (
    HEADS,
    LENGTH,
    MECHANISMS,
    gradients,
    mechanism,
    parameters,
    queries_keys_values,
    stack,
)

CAUSAL = causal_masks()


@pytest.mark.parametrize("word", MECHANISMS)
def test_hidden_keys_weigh_nothing_and_get_no_gradient(word):
    m = mechanism(word)
    axes = {"mask": cases.masks(), "bias": ["none", "buckets"], "groups": [HEADS, 2], "sight": ["itself", "remembered"]}
    for case in cases.cases(word, **axes):
        laws.hidden_keys(m, case)


@pytest.mark.parametrize("word", MECHANISMS)
def test_a_row_sees_no_hidden_value_however_large(word):
    m = mechanism(word)
    for case in cases.cases(word, mask=["padding", "causal", "window", "documents"], bias=["none", "alibi"]):
        laws.hidden_values(m, case)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [LENGTH, 70])  # below and above what the fused kernels take at once
@pytest.mark.parametrize("word", MECHANISMS)
def test_a_row_with_nothing_to_see_is_zero_with_zero_gradient(word, length, dtype):
    m = mechanism(word, dtype=dtype)
    for bias in cases.few_of(word, cases.BIASES, len(cases.BIASES)):
        for case in cases.cases(
            word, mask=["given for all"], bias=[bias], groups=[HEADS, 2], value=[cases.KEY, cases.VALUE]
        ):
            laws.blind_rows(m, case, length, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("word", MECHANISMS)
def test_no_mask_makes_a_number_that_is_none(word, dtype):
    m = mechanism(word, dtype=dtype)
    for case in cases.cases(word, mask=cases.masks(), bias=cases.FEW, groups=[2], sight=["itself", "remembered"]):
        sight = case.seen(dtype)
        q, k, v = queries_keys_values(case, sight, dtype)
        y = m(q, k, v, sight)
        assert y.dtype == dtype
        given = gradients(y, [q, k, v, *parameters(m, sight.bias)])
        assert all(x.isfinite().all() for x in (y, *given)), case
        assert not y[sight.blind.squeeze(-1).expand(y.shape[:-1])].any(), case


@pytest.mark.parametrize("kind", [Block, PostNormBlock])
@pytest.mark.parametrize("word", MECHANISMS)
def test_the_future_never_leaks(word, kind):
    blocks = stack(word, position=Rotary(), kind=kind)
    assert len(CAUSAL) >= 5
    for case in cases.cases(word, mask=CAUSAL, bias=cases.FEW, groups=[2], value=[cases.VALUE]):
        laws.future(blocks, case)


@pytest.mark.parametrize("word", families.WORDS)
def test_the_future_never_leaks_through_a_model(word):
    for name, place in families.CAUSAL.items():
        for position, bias in families.places(word, name):
            model, given = families.model(name, word, position=position, bias=bias), families.together(name)
            before = model(*given)
            for now in range(0, LENGTH - 1, 2):
                changed = [x.clone() for x in given]
                changed[place][:, now + 1 :] = families.other(given[place])[:, now + 1 :]
                after = model(*changed)
                torch.testing.assert_close(after[:, : now + 1], before[:, : now + 1], **cases.EXACT)
                assert not torch.allclose(after[:, now + 1], before[:, now + 1]), "what is now is not seen either"


@pytest.mark.parametrize("word", families.WORDS)
def test_the_past_of_a_forecast_has_no_gradient_from_its_future(word):
    for position, bias in families.places(word, "forecaster"):
        (series,) = families.together("forecaster")
        y = families.model("forecaster", word, position=position, bias=bias)(series.requires_grad_())
        for now in range(LENGTH - 1):
            (g,) = gradients(y[:, now], (series,))
            assert not g[:, now + 1 :].any()
            assert g[:, now].any()
