"""Cross-entropy and R-Drop in pieces are torch's own, values and gradients, in float64 to 1e-10."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy as torchs
from torch.nn.functional import kl_div

from heedful.objectives import cross_entropy as losses

PAD = 0


def problem(tokens: int, vocab: int, passes: int, ignored: float, seed: int) -> tuple[Tensor, Tensor]:
    """Scores (P N V), some of them far apart, and answers (N), a share of which is to be ignored."""
    dice = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(passes, tokens, vocab, generator=dice, dtype=torch.float64)
    answer = torch.randint(1, vocab, (tokens,), generator=dice)
    return logits, answer.masked_fill(torch.rand(tokens, generator=dice) < ignored, PAD)


def r_drop(logits: Tensor, answer: Tensor, smoothing: float, consistency: float) -> Tensor:
    """Liang et al. (2021) by torch's own functions: the passes' mean cross-entropy, and half of both divergences."""
    there = answer != PAD
    one, other = (scores[there].log_softmax(-1) for scores in logits)
    apart = kl_div(other, one, log_target=True, reduction="sum") + kl_div(one, other, log_target=True, reduction="sum")
    entropy = sum(torchs(scores[there], answer[there], reduction="sum", label_smoothing=smoothing) for scores in logits)
    return entropy / 2 + consistency * apart / 2


def both(logits: Tensor, answer: Tensor, smoothing: float, consistency: float) -> Tensor:
    """The two losses of R-Drop, summed as they weigh."""
    total, apart = losses.consistent(logits, answer, PAD, smoothing)
    return total + consistency * apart


def with_gradient(loss: Callable[[Tensor], Tensor], logits: Tensor, outer: float = 1.0) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    total = loss(logits)
    (outer * total).backward()
    assert logits.grad is not None
    return total.detach(), logits.grad


def assert_same(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> None:
    for mine, torch_s in zip(one, other, strict=True):
        assert mine.dtype == torch.float64
        torch.testing.assert_close(mine, torch_s, rtol=1e-10, atol=1e-10)


CASES = st.tuples(
    st.integers(1, 12), st.integers(2, 9), st.sampled_from([0.0, 0.4, 1.0]), st.integers(0, 99), st.integers(1, 60)
)
SMOOTHING = st.sampled_from([0.0, 0.1, 0.7])
OUTER = st.sampled_from([1.0, -0.3])


@given(CASES, SMOOTHING, OUTER)
@settings(max_examples=80, deadline=None)
def test_cross_entropy_is_torchs_in_any_pieces(
    case: tuple[int, int, float, int, int], smoothing: float, outer: float
) -> None:
    tokens, vocab, ignored, seed, piece = case
    logits, answer = problem(tokens, vocab, 1, ignored, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses, "PIECE", piece)
        mine = with_gradient(lambda x: losses.cross_entropy(x, answer, PAD, smoothing), logits[0], outer)
    assert_same(
        mine,
        with_gradient(
            lambda x: torchs(x, answer, reduction="sum", ignore_index=PAD, label_smoothing=smoothing), logits[0], outer
        ),
    )


@given(CASES, SMOOTHING, OUTER, st.sampled_from([0.5, 3.0]))
@settings(max_examples=80, deadline=None)
def test_two_passes_are_r_drop_in_any_pieces(
    case: tuple[int, int, float, int, int], smoothing: float, outer: float, consistency: float
) -> None:
    tokens, vocab, ignored, seed, piece = case
    logits, answer = problem(tokens, vocab, 2, ignored, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses, "PIECE", piece)
        mine = with_gradient(lambda x: both(x, answer, smoothing, consistency), logits, outer)
    assert_same(mine, with_gradient(lambda x: r_drop(x, answer, smoothing, consistency), logits, outer))


def test_two_equal_passes_cost_what_one_does() -> None:
    logits, answer = problem(7, 9, 1, 0.3, 1)
    total, apart = losses.consistent(torch.cat((logits, logits)), answer, PAD, 0.1)
    torch.testing.assert_close(total, losses.cross_entropy(logits[0], answer, PAD, 0.1), rtol=1e-12, atol=0)
    assert apart == 0


@pytest.mark.parametrize("consistency", [0.0, 1.0])
def test_where_all_is_ignored_the_loss_is_zero_and_so_is_its_gradient(consistency: float) -> None:
    logits, answer = problem(5, 9, 2, 1.0, 1)
    total, gradient = with_gradient(lambda x: both(x, answer, 0.1, consistency), logits)
    assert total == 0 and gradient.abs().max() == 0


def test_far_scores_make_no_nan() -> None:
    logits = torch.tensor([[[1e4, -1e4, 0.0]], [[-1e4, 1e4, 0.0]]], dtype=torch.float64)
    total, gradient = with_gradient(lambda x: both(x, torch.tensor([1]), 0.1, 1.0), logits)
    assert total.isfinite() and gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_scores_of_low_precision_are_summed_in_float32(dtype: torch.dtype) -> None:
    logits, answer = problem(400, 9, 1, 0.2, 1)
    low = logits[0].to(dtype)
    total, gradient = with_gradient(lambda x: losses.cross_entropy(x, answer, PAD, 0.1), low)
    exact, slope = with_gradient(lambda x: losses.cross_entropy(x, answer, PAD, 0.1), low.double())
    assert (total.dtype, gradient.dtype) == (torch.float32, dtype)
    torch.testing.assert_close(total.double(), exact, rtol=1e-5, atol=0)
    torch.testing.assert_close(gradient.double(), slope, rtol=1e-2, atol=1e-3)


def test_no_gradient_is_made_where_none_is_asked_for() -> None:
    logits, answer = problem(5, 9, 1, 0.2, 1)
    assert not losses.cross_entropy(logits[0], answer, PAD).requires_grad
    with torch.no_grad():
        assert not losses.cross_entropy(logits[0].requires_grad_(), answer, PAD).requires_grad


def test_nothing_at_all_costs_nothing() -> None:
    assert losses.cross_entropy(torch.zeros(0, 9), torch.zeros(0, dtype=torch.long), PAD) == 0
