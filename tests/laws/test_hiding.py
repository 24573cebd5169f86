"""What is hidden weighs nothing and learns nothing; what nobody sees is zero; the future is hidden from the past."""

import pytest
import torch

from heedful.attention import Given, Rotary
from heedful.blocks import Block, PostNormBlock
from tests.laws import cases, families
from tests.laws.cases import (
    BATCH,
    HEADS,
    LENGTH,
    MECHANISMS,
    asked,
    gradients,
    mechanism,
    parameters,
    probe,
    stack,
    states,
)


def ahead(dense):
    """Whether some row of a square mask sees what comes after it."""
    return bool((dense & (torch.arange(LENGTH) > torch.arange(LENGTH)[:, None])).any())


CAUSAL = [name for name, mask in cases.masks().items() if not ahead(mask.over(torch.empty(BATCH, LENGTH)).dense)]


@pytest.mark.parametrize("word", MECHANISMS)
def test_hidden_keys_weigh_nothing_and_get_no_gradient(word):
    m = mechanism(word)
    axes = {"mask": cases.masks(), "bias": ["none", "buckets"], "groups": [HEADS, 2], "sight": ["itself", "remembered"]}
    for case in cases.cases(word, **axes):
        sight = case.seen()
        q, k, v = asked(case, sight)
        weights, y = m.weights(q, k, sight), m(q, k, v, sight)
        hidden = ~sight.dense.expand_as(weights)
        assert not weights[hidden].any(), case
        nobody = hidden.unflatten(1, (case.groups, -1)).all(2)  # B G T S: hidden from every head of the group
        for row in range(y.shape[2]):
            for g in gradients(y[:, :, row], (k, v)):
                assert not g[nobody[:, :, row]].any(), f"{case}: row {row}"


@pytest.mark.parametrize("word", MECHANISMS)
def test_a_row_sees_no_hidden_value_however_large(word):
    m = mechanism(word)
    for case in cases.cases(word, mask=["padding", "causal", "window", "documents"], bias=["none", "alibi"]):
        sight = case.seen()
        q, k, v = (x.detach() for x in asked(case, sight))
        before = m(q, k, v, sight)
        seen = sight.dense.expand(BATCH, HEADS, LENGTH, LENGTH)
        for column in range(LENGTH):
            k2, v2 = k.clone(), v.clone()
            k2[:, :, column], v2[:, :, column] = 1e3, 1e6
            after, blind_to = m(q, k2, v2, sight), ~seen[..., column]
            torch.testing.assert_close(after[blind_to], before[blind_to], **cases.EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [LENGTH, 70])  # below and above what the fused kernels take at once
@pytest.mark.parametrize("word", MECHANISMS)
def test_a_row_with_nothing_to_see_is_zero_with_zero_gradient(word, length, dtype):
    m = mechanism(word, dtype=dtype)
    seen = torch.rand(BATCH, HEADS, length, length, generator=torch.Generator().manual_seed(0)) < 0.5
    seen[0], seen[1, :, 3], seen[2, 2, -1] = False, False, False
    for bias in cases.few_of(word, cases.BIASES, len(cases.BIASES)):
        for case in cases.cases(
            word, mask=["given for all"], bias=[bias], groups=[HEADS, 2], value=[cases.KEY, cases.VALUE]
        ):
            made = cases.BIASES[bias]()
            sight = Given(seen).over(torch.empty(BATCH, length), bias=made if made is None else made.to(dtype))
            q, k, v = asked(case, sight, dtype)
            y = m(q, k, v, sight)
            blind = ~seen.any(-1)
            leaves = [q, k, v, *parameters(m, sight.bias)]
            for value, along in ((y, None), (m.weights(q, k, sight), None), (y, probe(y) * blind.unsqueeze(-1))):
                assert not value[blind].any(), case
                given = gradients(value, leaves, along)
                assert all(g.isfinite().all() for g in given), case
                assert not given[0][blind].any(), case
            assert not any(g.any() for g in given), case  # along blind rows alone, nothing learns anything


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("word", MECHANISMS)
def test_no_mask_makes_a_number_that_is_none(word, dtype):
    m = mechanism(word, dtype=dtype)
    for case in cases.cases(word, mask=cases.masks(), bias=cases.FEW, groups=[2], sight=["itself", "remembered"]):
        sight = case.seen(dtype)
        q, k, v = asked(case, sight, dtype)
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
        x, sight = states(), case.seen()
        y = blocks(x, sight)
        for now in range(LENGTH - 1):
            (g,) = gradients(y[:, now], (x,))
            assert not g[:, now + 1 :].any(), f"{case}: what comes after {now} has a gradient"
            other = x.detach().clone()
            other[:, now + 1 :] += 1.0
            changed = blocks(other, case.seen())[:, : now + 1]
            torch.testing.assert_close(changed, y[:, : now + 1], **cases.EXACT, msg=lambda m, c=case: f"{c}: {m}")
        if bool(sight.dense[..., -1, 0].any()):
            assert gradients(y[:, -1], (x,))[0][:, 0].any(), f"{case}: the past is not seen either"


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
