"""The cuts against those of transformers, which nobody here wrote, and against their definitions on plain lists."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from heedful.decoding.truncation import Cuts, apply_temperature, likeliest, not_far_behind, nucleus
from heedful.errors import Refusal

# Eighths, so that there are many equals and that a difference or a half is exact; -inf is what may never be written.
EIGHTHS = st.integers(-40, 40).map(lambda n: n / 8)
OCTAVES = st.integers(-5, 5).map(lambda n: n * math.log(2))  # chances that are halves of each other
ROW = st.integers(1, 20)
SHARES = st.one_of(st.floats(0.01, 1.0), st.sampled_from([1e-300, 1e-17, 0.1, 0.25, 1 / 3, 0.5, 2 / 3, 0.9, 0.99, 1.0]))
MANY = settings(max_examples=150, deadline=None)


@st.composite
def rows(draw: st.DrawFn) -> Tensor:
    """Scores of two rows, some of them equal, some never to be written, each row with one that can be."""
    size, score = (
        draw(ROW),
        draw(st.sampled_from([EIGHTHS, OCTAVES, st.floats(-20, 20), st.just(0.5), st.integers(0, 1)])),
    )
    scores = torch.tensor([[float(draw(score)) for _ in range(size)] for _ in range(2)], dtype=torch.float64)
    never = torch.tensor([[draw(st.booleans()) and draw(st.booleans()) for _ in range(size)] for _ in range(2)])
    never[:, draw(st.integers(0, size - 1))] = False
    return scores.masked_fill(never, -torch.inf)


def left(scores: Tensor) -> list[list[float]]:
    """What is left of each row, in order: of equals it does not matter which."""
    return [sorted(row[row > -torch.inf].tolist()) for row in scores]


@MANY
@given(rows(), st.integers(1, 25))
def test_likeliest_is_theirs_with_equals(scores: Tensor, count: int) -> None:
    assert likeliest(scores, count).equal(TopKLogitsWarper(count)(None, scores))


@MANY
@given(rows(), SHARES)
def test_nucleus_leaves_what_theirs_does_and_of_equals_the_first(scores: Tensor, share: float) -> None:
    ours = nucleus(scores, share)
    theirs = TopPLogitsWarper(share)(None, scores)
    assert left(ours) == left(theirs)
    for before, after in zip(scores.tolist(), ours.tolist(), strict=True):
        for value in set(before):
            stays = [after[at] == value for at, score in enumerate(before) if score == value]
            assert stays == sorted(stays, reverse=True)


@MANY
@given(rows(), st.one_of(st.floats(0.0, 1.0, exclude_max=True), st.sampled_from([0.125, 0.25, 0.5])))
def test_not_far_behind_is_theirs_with_equals(scores: Tensor, share: float) -> None:
    assert not_far_behind(scores, share).equal(MinPLogitsWarper(share)(None, scores))


@MANY
@given(
    rows().map(lambda scores: scores.mul(8).round().div(8)),
    st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]),
    st.integers(0, 25),
    SHARES,
    st.sampled_from([0.0, 0.01, 0.05, 0.3, 0.9]),
)
def test_all_together_are_theirs_in_their_order(
    scores: Tensor, temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    scores = scores - scores.amax(-1, keepdim=True)  # exact, for they are eighths
    ours = Cuts(temperature, top_k, top_p, min_p)(scores)
    theirs = TemperatureLogitsWarper(temperature)(None, scores)
    theirs = TopKLogitsWarper(top_k)(None, theirs) if top_k else theirs
    theirs = TopPLogitsWarper(top_p)(None, theirs) if top_p < 1 else theirs
    theirs = MinPLogitsWarper(min_p)(None, theirs) if min_p else theirs
    assert left(ours) == left(theirs)


def test_the_order_of_the_cuts_matters_to_the_test_above() -> None:
    scores = torch.tensor([[0.5, 0.2, 0.2, 0.1]], dtype=torch.float64).log()
    assert left(nucleus(likeliest(scores, 2), 0.55)) != left(likeliest(nucleus(scores, 0.55), 2))
    assert left(not_far_behind(nucleus(scores, 0.55), 0.3)) != left(nucleus(not_far_behind(scores, 0.3), 0.55))
    assert len(left(apply_temperature(nucleus(scores, 0.55), 0.1))[0]) != len(
        left(nucleus(apply_temperature(scores, 0.1), 0.55))[0]
    )


@MANY
@given(rows(), SHARES)
def test_a_nucleus_is_the_fewest_tokens_that_have_the_share(scores: Tensor, share: float) -> None:
    for before, after in zip(scores.softmax(-1).tolist(), nucleus(scores, share).tolist(), strict=True):
        stays = sorted(chance for chance, score in zip(before, after, strict=True) if score > -math.inf)
        assert sum(stays) >= share - 1e-9
        assert sum(stays[1:]) <= share + 1e-9  # without the least of them it is not there


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-45, 1e-30, 1e30, 1e300, 1.7e308])
def test_no_temperature_is_too_low_or_too_high(dtype: torch.dtype, temperature: float) -> None:
    scores = torch.tensor([[-303.0, -torch.inf, -301.0, -301.0, -1000.0]], dtype=dtype)
    chances = apply_temperature(scores, temperature).softmax(-1)
    wanted = [[0.0, 0.0, 0.5, 0.5, 0.0]] if temperature < 1 else [[0.25, 0.0, 0.25, 0.25, 0.25]]
    torch.testing.assert_close(chances, torch.tensor(wanted, dtype=dtype))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
def test_a_temperature_is_theirs(temperature: float) -> None:
    scores = torch.randn(5, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    theirs = TemperatureLogitsWarper(temperature)(None, scores)
    torch.testing.assert_close(
        apply_temperature(scores, temperature).softmax(-1), theirs.softmax(-1), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"temperature": 0.0}, "above 0"),
        ({"temperature": -1.0}, "above 0"),
        ({"temperature": math.nan}, "above 0"),
        ({"temperature": math.inf}, "finite"),
        ({"top_k": -1}, "0 for all"),
        ({"top_p": 0.0}, "more than 0"),
        ({"top_p": 1.1}, "at most 1"),
        ({"top_p": math.nan}, "at most 1"),
        ({"min_p": -0.1}, "0 or more"),
        ({"min_p": 1.0}, "less than 1"),
    ],
)
def test_cuts_that_cannot_be_made_are_refused(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(Refusal, match=f"{next(iter(wrong))}=.*{said}"):
        Cuts(**wrong)  # type: ignore[arg-type]
