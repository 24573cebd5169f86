"""Where a kind of attention is softmax, or what its paper says: in the limit, by hand, and how fast it gets there."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.attention import (
    AdaptiveSpan,
    Attention,
    BigBird,
    Blocks,
    Causal,
    Collaborative,
    Everything,
    Fixed,
    GaussianBias,
    Join,
    Local,
    Local2D,
    Longformer,
    MultiHead,
    MultiScale,
    Padding,
    TaskBlocks,
    Window,
)
from heedful.attention.mechanisms import (
    DPFP,
    Linformer,
    Nystromformer,
    Performer,
    Reformer,
    Routing,
    Sinkhorn,
    Softmax,
    TalkingHeads,
    dpfp,
)
from heedful.blocks import Block, FeedForward, LazyFormer, Predictive, Stack
from tests.laws.cases import EXACT

BATCH, HEADS, LENGTH, WIDTH = 2, 3, 11, 8
PADDING = Padding(torch.tensor([LENGTH, 6]))


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def asked(length=LENGTH):
    return (draw(BATCH, HEADS, length, WIDTH, seed=seed) for seed in range(3))


def over(mask, length=LENGTH):
    return mask.over(torch.empty(BATCH, length))


@pytest.mark.parametrize("mask", [Everything(), Causal(), PADDING])
def test_a_window_as_long_as_the_sequence_is_softmax(mask):
    q, k, v = asked()
    torch.testing.assert_close(Softmax()(q, k, v, over(mask & Window(LENGTH))), Softmax()(q, k, v, over(mask)), **EXACT)


WIDE = {
    "blocks": Blocks(LENGTH),
    "fixed": Fixed(LENGTH),
    "longformer": Longformer(LENGTH),
    "bigbird": BigBird(LENGTH),
    "local": Local(LENGTH),
    "local2d": Local2D(LENGTH, row=LENGTH),
    "multiscale": MultiScale(HEADS, LENGTH),
}


@pytest.mark.parametrize("name", WIDE)
def test_a_sparse_mask_whose_size_is_the_sequence_hides_nothing(name):
    assert over(WIDE[name]).dense.all()


def test_biases_that_say_nothing_are_softmax():
    span, gaussian, table = AdaptiveSpan(HEADS, 2 * LENGTH), GaussianBias(HEADS), TaskBlocks(LENGTH)
    with torch.no_grad():
        gaussian.spread.zero_(), gaussian.away.zero_(), table.table.zero_()
    (q, k, v), exact = asked(), Softmax()(*asked(), over(Everything()))
    for bias in (span, gaussian, table):
        seen = Everything().over(torch.empty(BATCH, LENGTH), bias=bias.double())
        torch.testing.assert_close(Softmax()(q, k, v, seen), exact, **EXACT)


def blocks():
    torch.manual_seed(0)

    def plain() -> Attention:
        return Attention(MultiHead(WIDTH, 2), Softmax(), Join(WIDTH, WIDTH))

    return [Block(WIDTH, plain(), FeedForward(WIDTH, 4)) for _ in range(2)]


def test_stacks_that_exchange_nothing_are_plain():
    """LazyFormer whose every layer makes its weights, and Predictive whose share of what was foretold is none."""
    lazy, predictive, x = LazyFormer(blocks(), every=1), Predictive(blocks(), heads=2), draw(BATCH, LENGTH, WIDTH)
    with torch.no_grad():
        predictive.share.zero_()
    exact = Stack(blocks()).double()(x, over(Everything()))
    for stack in (lazy, predictive):
        torch.testing.assert_close(stack.double()(x, over(Everything())), exact, **EXACT)


def test_collaborative_heads_that_share_no_channel_are_plain_heads():
    """Cordonnier et al. (2020), section 3: concatenated heads are the case where each mixes channels of its own."""
    plain, heads = MultiHead(WIDTH, 2).double(), Collaborative(WIDTH, 2, key=WIDTH, value=WIDTH // 2).double()
    heads.to_qkv.load_state_dict(plain.to_qkv.state_dict())
    with torch.no_grad():
        heads.mixing.zero_()[0, 0, : WIDTH // 2] = heads.mixing[1, 0, WIDTH // 2 :] = 1.0
    x = draw(BATCH, LENGTH, WIDTH)
    (q, k, v), (one, two, three) = (project(x, over(Everything())) for project in (plain, heads))
    torch.testing.assert_close(one @ two.mT, q @ k.mT, **EXACT)
    torch.testing.assert_close(three, v, **EXACT)


LIKE_SOFTMAX = {
    "talking heads that have not yet talked": lambda: TalkingHeads(HEADS),
    "as many landmarks as members": lambda: Nystromformer(LENGTH, iterations=40),
    "one cluster": lambda: Routing(HEADS, WIDTH, clusters=1),
    "one block": lambda: Sinkhorn(HEADS, WIDTH, size=LENGTH),
}


@pytest.mark.parametrize("mask", [Everything(), PADDING])
@pytest.mark.parametrize("name", LIKE_SOFTMAX)
def test_in_the_limit_it_is_softmax(name, mask):
    m, (q, k, v) = LIKE_SOFTMAX[name]().double(), asked()
    there = slice(None) if mask is not PADDING else [0]  # a member that is padding may see another thing
    whole, exact = m(q, k, v, over(mask)), Softmax()(q, k, v, over(mask))
    torch.testing.assert_close(whole[there], exact[there], rtol=0.0, atol=1e-8)
    torch.testing.assert_close(whole[1, :, :6], exact[1, :, :6], rtol=0.0, atol=1e-8)


def test_a_linformer_that_shortens_nothing_is_softmax():
    m, (q, k, v) = Linformer(LENGTH, rank=LENGTH).double(), asked()
    with torch.no_grad():
        m.shorten.copy_(torch.eye(LENGTH).expand(2, -1, -1))
    torch.testing.assert_close(m(q, k, v, over(Everything())), Softmax()(q, k, v, over(Everything())), **EXACT)


def test_a_reformer_with_one_chunk_is_softmax_among_all_others():
    m, (q, k, v) = Reformer(HEADS, WIDTH, size=LENGTH, rounds=3).double(), asked()
    scores = (q @ k.mT / WIDTH**0.5).masked_fill(torch.eye(LENGTH, dtype=torch.bool), -torch.inf)
    torch.testing.assert_close(m(q, k, v, over(Everything())), scores.softmax(-1) @ v, **EXACT)
    alone = [x[:, :, :1] for x in (q, k, v)]
    torch.testing.assert_close(m(*alone, over(Everything(), 1)), alone[2], **EXACT)


def test_the_error_of_a_performer_falls_as_the_root_of_its_features():
    """Choromanski et al. (2021), section 4: the variance of the estimate is that of one feature, over their number."""
    q, k, v = (x / 2 for x in asked(32))
    exact, errors = Softmax()(q, k, v, over(Everything(), 32)), []
    counts = [2**n for n in (5, 7, 9, 11)]
    for features in counts:
        m, found = Performer(WIDTH, features).double(), []
        for seed in range(5):
            m.redraw(torch.Generator().manual_seed(seed))
            found.append((m(q, k, v, over(Everything(), 32)) - exact).square().mean())
        errors.append(torch.stack(found).mean().sqrt())
    slope = (errors[-1] / errors[0]).log() / torch.tensor(counts[-1] / counts[0]).log()
    assert -0.65 < slope < -0.4, [float(error) for error in errors]
    assert errors[-1] < 0.05


def test_redrawing_changes_features_and_nothing_else_does():
    for m in (Performer(WIDTH, 16), Reformer(HEADS, WIDTH, size=3), Routing(HEADS, WIDTH, clusters=3)):
        m, (q, k, v) = m.double(), asked()
        before = m(q, k, v, over(Everything()))
        assert torch.equal(m(q, k, v, over(Everything())), before)
        m.redraw(torch.Generator().manual_seed(7))
        after = m(q, k, v, over(Everything()))
        assert not torch.allclose(after, before)
        m.redraw(torch.Generator().manual_seed(7))
        assert torch.equal(m(q, k, v, over(Everything())), after)


@pytest.mark.parametrize("order", [1, 2])
def test_fast_weights_are_written_by_the_delta_rule(order):
    """Schlag et al. (2021), equations 23 to 25, step by step, with the features of equation 37."""
    m, (q, k, v) = DPFP(WIDTH, order), asked()

    def features(x):
        signed = torch.cat((x[:-1], -x[:-1])).relu()
        products = torch.cat([signed * signed.roll(n) for n in range(1, order + 1)])
        return products / (products.sum() + 1e-6)

    y = m(q, k, v, over(Causal()))
    for b in range(BATCH):
        for h in range(HEADS):
            held = torch.zeros(WIDTH, 2 * (WIDTH - 1) * order, dtype=torch.float64)
            for t in range(LENGTH):
                key, share = features(k[b, h, t]), k[b, h, t, -1].sigmoid()
                held += share * torch.outer(v[b, h, t] - held @ key, key)
                torch.testing.assert_close(y[b, h, t], held @ features(q[b, h, t]), **EXACT)


def test_fast_weights_of_long_sequences_are_exact_in_pairs(monkeypatch):
    """4,200 keys in 66 chunks, values and gradients: one by one in float64 they are the same to float32's rounding."""
    torch.manual_seed(0)
    given, m = [torch.randn(1, 2, 4200, 16) for _ in range(3)], DPFP(16)

    def made(dtype, paired):
        monkeypatch.setattr(dpfp, "pays_in_pairs", lambda _: paired)
        q, k, v = (x.to(dtype).requires_grad_() for x in given)
        y, after = m.run(m.given(q, k, v, torch.ones(1, dtype=dtype)))
        return [y, after, *torch.autograd.grad(y.square().sum() + after.sum(), (q, k, v))]

    exact = made(torch.float64, False)
    torch.testing.assert_close(made(torch.float64, True), exact, **EXACT)
    for ours, truth in zip(made(torch.float32, True), exact, strict=True):
        assert (ours - truth).abs().max() < 5e-6 * truth.abs().max()


def test_fast_weights_in_pairs_take_a_few_steps_more_for_twice_the_length():
    """A GPU waits for each of them."""

    class Steps(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, step, types, args=(), kwargs=None):
            self.count += not step.is_view
            return step(*args, **kwargs or {})

    def count(chunks):
        k, v = (torch.randn(1, 1, chunks, 1, width, requires_grad=True) for width in (2, 3))
        with Steps() as steps:
            states, _, _ = dpfp.in_pairs(k, v, k, torch.zeros(1, 1, 2, 3))
            torch.autograd.grad(states.sum(), (k, v))
        return steps.count

    assert count(1024) - count(512) == count(512) - count(256) < 40
    assert count(1024) < 400
