"""What papers say of kinds that are their definition alone, by hand on a small case."""

import math

import pytest
import torch

from heedful.attention import AdaptiveSpan, Causal, Everything, GaussianBias, MultiScale, Padding, TaskBlocks
from heedful.attention.mechanisms import (
    CSALR,
    RFA,
    SAC,
    Average,
    Clustered,
    HardCoded,
    Informer,
    Localness,
    LowRank,
    MemoryCompressed,
    Softmax,
)
from tests.laws.cases import EXACT

BATCH, HEADS, LENGTH, WIDTH = 2, 3, 7, 4


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def asked(length=LENGTH):
    return (draw(BATCH, HEADS, length, WIDTH, seed=seed) for seed in range(3))


def over(mask, length=LENGTH, bias=None):
    return mask.over(torch.empty(BATCH, length), bias=bias)


def close(one, two, **tolerance):
    torch.testing.assert_close(one, two, **(tolerance or EXACT))


def test_average_is_the_mean_of_all_up_to_now():
    q, k, v = asked()
    close(Average()(q, k, v, over(Causal())), v.cumsum(2) / torch.arange(1, LENGTH + 1)[:, None])


def test_hard_coded_heads_look_before_at_and_after_themselves():
    q, k, _ = asked()
    weights = HardCoded(HEADS).double().weights(q, k, over(Everything()))
    for head, offset in enumerate((-1, 0, 1)):
        for i in range(LENGTH):
            row = torch.tensor([math.exp(-((j - i - offset) ** 2) / 2) for j in range(LENGTH)], dtype=torch.float64)
            close(weights[1, head, i], row / row.sum())


def test_localness_adds_a_gaussian_around_a_centre_that_the_query_predicts():
    """Yang et al. (2018), equations 5 to 8, for a sequence of I positions from 0 to I - 1."""
    m, (q, k, _) = Localness(HEADS, WIDTH).double(), asked()
    weights = m.weights(q, k, over(Everything()))
    for h in range(HEADS):
        for i in range(LENGTH):
            hidden = (q[0, h, i] @ m.hidden[h]).tanh()
            centre, wide = ((hidden @ m.predict[part, h]).sigmoid() for part in range(2))
            centre, wide = centre * (LENGTH - 1), wide * LENGTH
            added = -((torch.arange(LENGTH) - centre) ** 2) / (2 * (wide / 2) ** 2)
            close(weights[0, h, i], (k[0, h] @ q[0, h, i] / WIDTH**0.5 + added).softmax(-1))


def test_clustered_queries_look_as_their_mean_does():
    """Vyas et al. (2020), sections 3.2 and 3.2.1: Lloyd's rounds over signs, and the means of what they find."""
    m, (q, k, v) = Clustered(HEADS, WIDTH, clusters=2, bits=5, rounds=3).double(), asked()
    y = m(q, k, v, over(Everything()))
    found = set()
    for h in range(HEADS):
        hashes = [[1 if float(x @ w) >= 0 else -1 for w in m.directions[h].mT] for x in q[0, h]]
        centres = [hashes[at * LENGTH // 2] for at in range(2)]
        for turn in range(4):
            shared = [[sum(a == b for a, b in zip(one, centre, strict=True)) for centre in centres] for one in hashes]
            near = [row.index(max(row)) for row in shared]
            for at in {*near} if turn < 3 else ():
                sides = zip(*(one for one, own in zip(hashes, near, strict=True) if own == at), strict=True)
                centres[at] = [1 if sum(side) >= 0 else -1 for side in sides]
        found |= {(h, at) for at in near}
        for i in range(LENGTH):
            mean = q[0, h, [at == near[i] for at in near]].mean(0)
            close(y[0, h, i], (k[0, h] @ mean / WIDTH**0.5).softmax(-1) @ v[0, h])
    assert len(found) > HEADS, "some head has found two clusters"
    alike = q[:, :, :1].expand_as(q)
    close(m(alike, k, v, over(Everything())), Softmax()(alike, k, v, over(Everything())))


def test_clusters_are_found_where_queries_lie_in_heaps():
    torch.manual_seed(0)
    heaps, which = 5 * torch.randn(4, 16), torch.arange(4).repeat(8)[torch.randperm(32)]
    q = (heaps[which] + torch.randn(32, 16) / 8)[None, None]
    m, there = Clustered(1, 16, clusters=6), torch.ones(1, 1, 32, 1, dtype=torch.bool)
    near = m.found(q, there)[0, 0]
    for one in near.unique():
        assert len(which[near == one].unique()) == 1, "no cluster holds two heaps"


def test_clusters_are_the_same_in_any_precision():
    torch.manual_seed(0)
    m, q = Clustered(1, 16, clusters=16, bits=4001), torch.randn(1, 1, 200, 16)  # more sides than bfloat16 counts
    there = torch.ones(1, 1, 200, 1, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        near = m.found(q, there)
    assert torch.equal(near, m.found(q, there))


def test_informer_asks_the_sharpest_queries_and_gives_the_others_the_mean():
    m, (q, k, v) = Informer(factor=1), asked()
    y, exact = m(q, k, v, over(Everything())), Softmax()(q, k, v, over(Everything()))
    scores = q @ k.mT / WIDTH**0.5
    measure = scores.amax(-1) - scores.mean(-1)
    sharp = measure.argsort(dim=-1, descending=True)[..., : math.ceil(math.log(LENGTH))]
    for b in range(BATCH):
        for h in range(HEADS):
            for i in range(LENGTH):
                close(y[b, h, i], exact[b, h, i] if i in sharp[b, h] else v[b, h].mean(0))
    close(Informer(factor=LENGTH)(q, k, v, over(Everything())), exact)


def test_the_error_of_random_features_falls_as_the_root_of_their_number():
    """Peng et al. (2021): of queries and keys of length 1, exp(q.k) by sines and cosines."""
    q, k, v = (torch.nn.functional.normalize(x, dim=-1) for x in asked(16))
    exact = Softmax(scale=1.0)(q, k, v, over(Everything(), 16))
    errors = []
    for features in (64, 1024):
        m, found = RFA(WIDTH, features).double(), []
        for seed in range(8):
            m.redraw(torch.Generator().manual_seed(seed))
            found.append((m(q, k, v, over(Everything(), 16)) - exact).square().mean())
        errors.append(torch.stack(found).mean().sqrt())
    assert 2.8 < errors[0] / errors[1] < 5.7  # the root of 16, give or take
    assert errors[1] < 0.02


def test_csalr_inverts_the_landmarks_matrix_with_the_identity_added():
    q, k, v = asked()
    first, second = slice(0, 4), slice(4, 7)  # the segments of seven for two landmarks
    some_q, some_k = (torch.stack((x[:, :, first].mean(2), x[:, :, second].mean(2)), 2) for x in (q, k))
    parts = [a @ b.mT / WIDTH**0.5 for a, b in ((q, some_k), (some_q, some_k), (some_q, k))]
    to, among, of = (part.softmax(-1) for part in parts)
    said = to @ torch.linalg.inv(among + torch.eye(2, dtype=torch.float64)) @ of @ v
    close(CSALR(landmarks=2)(q, k, v, over(Everything())), said, rtol=0.0, atol=2e-3)  # a little more than it


def test_memory_compressed_groups_are_seen_when_they_are_past():
    m, (q, k, v) = MemoryCompressed(HEADS, size=3).double(), asked()
    with torch.no_grad():
        m.kernel += draw(*m.kernel.shape, seed=9)
    keys, values = (
        torch.stack([(m.kernel[n][None, :, :, None] * x[:, :, at : at + 3]).sum(2) for at in (0, 3)], 2)
        for n, x in enumerate((k, v))
    )
    y = m(q, k, v, over(Causal()))
    close(y[:, :, :2], torch.zeros_like(y[:, :, :2]))
    close(y[:, :, 2:5], values[:, :, :1].expand(-1, -1, 3, -1))
    close(y[:, :, 6], ((q[:, :, 6:] @ keys.mT / WIDTH**0.5).softmax(-1) @ values)[:, :, 0])
    one = MemoryCompressed(HEADS, size=1).double()
    close(one(q, k, v, over(Everything())), Softmax()(q, k, v, over(Everything())))


def test_low_rank_is_the_mean_of_a_far_and_a_near_softmax():
    m, (q, k, v) = LowRank(HEADS, WIDTH, rank=2, size=2).double(), asked()
    far = ((q @ m.narrow[0]) @ (k @ m.narrow[1]).mT / 2**0.5).softmax(-1)
    apart = (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)).abs() < 2
    near = (q @ k.mT / WIDTH**0.5).masked_fill(~apart, -torch.inf).softmax(-1)
    close(m(q, k, v, over(Everything())), (far + near) @ v / 2)


def test_sac_is_softmax_among_the_likeliest_edges_and_others_when_drawn():
    torch.manual_seed(0)  # a policy that is certain of none, and likes one best
    m, (q, k, v) = SAC(HEADS, WIDTH, edges=2).double(), asked()
    weights, sight = m.weights(q, k, over(Causal())), over(Causal())
    likely = ((q @ m.policy[0]) @ (k @ m.policy[1]).mT / WIDTH**0.5).masked_fill(~sight.dense, -torch.inf)
    for i in range(LENGTH):
        best = likely[1, 2, i].topk(min(2, i + 1)).indices
        row = torch.full((LENGTH,), -torch.inf, dtype=torch.float64)
        row[best] = (k[1, 2] @ q[1, 2, i] / WIDTH**0.5)[best]
        close(weights[1, 2, i], row.softmax(-1))
    close(SAC(HEADS, WIDTH, edges=LENGTH).double()(q, k, v, sight), Softmax()(q, k, v, sight))
    seen = []
    for seed in range(200):
        m.redraw(torch.Generator().manual_seed(seed))
        seen.append(m.chosen(q, k, over(Everything())))
    assert all(int(one[0, 0, 0].sum()) == 2 for one in seen)
    first = torch.stack([one[0, 0, 0] for one in seen]).double().mean(0)
    chances = m.chances(q, k, over(Everything()))[0, 0, 0].exp()
    assert first.argsort().tolist()[-1] == chances.argsort().tolist()[-1]  # what is likeliest comes most often
    assert first.min() > 0 and 0.5 < first.max() < 1
    m.settle()
    assert torch.equal(m.weights(q, k, over(Causal())), weights)


def test_a_gaussian_bias_is_minus_the_size_of_w_times_the_square_and_b():
    bias = GaussianBias(HEADS)
    added = over(Everything(), bias=bias).scores.detach()
    assert added.shape == (1, HEADS, LENGTH, LENGTH)
    assert float(added[0, 1, 2, 5]) == pytest.approx(-abs(0.01 * 9 - 0.01))
    assert float(added[0, 1, 2, 3]) == pytest.approx(0.0)  # where w d^2 and b even out


def test_a_span_fades_out_over_its_ramp_and_sees_nothing_beyond():
    bias = AdaptiveSpan(HEADS, farthest=4, ramp=2)
    shares = over(Everything(), bias=bias).scores.exp()[0, 0, 0]
    assert shares.tolist() == pytest.approx([1, 1, 1, 0.5, 0, 0, 0], abs=1e-12)  # a span of half of four
    assert bias.spans.tolist() == [2.0] * HEADS
    shares.sum().backward()
    assert bias.share.grad[0] > 0 and not bias.share.grad[1:].any()


def test_camtl_adds_blocks_along_the_diagonal_that_each_task_stretches_and_shifts():
    bias = TaskBlocks(length=6, tasks=2, pieces=3)
    with torch.no_grad():
        bias.stretch[1], bias.shift[1] = 2.0, 0.5
    added = over(Everything(), bias=bias.of(torch.tensor([0, 1]))).scores.detach()
    assert float(added[0, 0, 2, 3]) == pytest.approx(float(bias.table.detach()[1, 0, 1]))
    assert float(added[1, 0, 2, 3]) == pytest.approx(2 * float(bias.table.detach()[1, 0, 1]) + 0.5)
    assert not added[:, 0, 2, 4].any()  # another block
    assert not added[:, 0, 6].any()  # beyond its length
    assert bias.of(torch.tensor([0, 1])).table is bias.table


def test_heads_of_many_scales_see_twice_as_far_as_those_before_them():
    dense = over(MultiScale(HEADS, 1)).dense[0]
    assert [int(dense[h, 3].sum()) for h in range(HEADS)] == [1, 3, 7]


@pytest.mark.parametrize("m", [Clustered(HEADS, WIDTH), Informer(), CSALR()])
def test_padding_is_no_part_of_what_is_chosen(m):
    m, (q, k, v) = m.double(), asked()
    whole = m(q, k, v, over(Padding(torch.tensor([LENGTH, 4]))))
    alone = m(*(x[1:, :, :4] for x in (q, k, v)), Everything().over(torch.empty(1, 4)))
    close(whole[1:, :, :4], alone)
