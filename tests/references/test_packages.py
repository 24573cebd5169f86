"""The same numbers as packages that others wrote for one kind of attention each, at random weights."""

import warnings
from functools import partial
from unittest.mock import patch

import torch
from axial_attention import AxialAttention
from hypothesis import assume, given, settings
from hypothesis import strategies as some
from linformer import LinformerSelfAttention
from local_attention import LocalAttention
from nystrom_attention import NystromAttention
from torch.func import functional_call
from torch.nn.functional import elu, normalize, pad

from heedful.attention import Axial, Causal, Everything, Local, Padding, Window
from heedful.attention.mechanisms import (
    Linear,
    Linformer,
    Nystromformer,
    Performer,
    Reformer,
    Routing,
    Sinkhorn,
    Softmax,
)
from heedful.attention.projections import split

with warnings.catch_warnings():  # this one asks distutils for the version of torch
    warnings.simplefilter("ignore")
    from performer_pytorch import performer_pytorch as performer
from reformer_pytorch.reformer_pytorch import LSHAttention
from routing_transformer import routing_transformer as routing
from sinkhorn_transformer import sinkhorn_transformer as sinkhorn

few = settings(max_examples=25, derandomize=True, deadline=None)
SHAPE = {"seed": some.integers(0, 999), "batch": some.integers(1, 3), "heads": some.integers(1, 3)}
LENGTH, WIDTH = some.integers(1, 37), some.integers(2, 9)


def drawn(seed, *shape, count=3):
    coins = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=coins).requires_grad_() for _ in range(count)]


def joined(y):
    return y.transpose(1, 2).flatten(2)


def alike(ours, theirs, leaves):
    """Values to 1e-5, and the gradients of all that both were made of, which are sums of many, to 1e-4."""
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=1e-5)
    along, leaves = torch.randn(ours.shape, generator=torch.Generator().manual_seed(0)), list(leaves)
    one, two = (torch.autograd.grad(y, leaves, along, retain_graph=True) for y in (ours, theirs))
    torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-4)


@few
@given(**SHAPE, length=LENGTH, width=WIDTH, features=some.integers(1, 40), causal=some.booleans())
def test_performer_is_theirs_with_nothing_added_to_features(seed, batch, heads, length, width, features, causal):
    # Theirs adds 1e-4 to each feature and 1e-6 to sums of a causal row, against a division by zero; the paper's
    # features (Choromanski et al., 2021) are positive as they are, and so are ours.
    torch.manual_seed(seed)
    q, k, v = drawn(seed, batch, heads, length, width)
    theirs, ours = performer.FastAttention(width, features, causal=causal), Performer(width, features)
    theirs.causal_linear_fn = partial(performer.causal_linear_attention_noncuda, eps=0.0)
    ours.directions.copy_(theirs.projection_matrix)
    with patch.object(performer, "softmax_kernel", partial(performer.softmax_kernel, eps=0.0)):
        y = theirs(q, k, v)
    alike(ours(q, k, v, (Causal() if causal else Everything()).over(q[:, 0])), y, (q, k, v))


@few
@given(**SHAPE, length=LENGTH, width=WIDTH, causal=some.booleans())
def test_linear_attention_is_theirs_with_features_of_elu(seed, batch, heads, length, width, causal):
    q, k, v = drawn(seed, batch, heads, length, width)
    over = partial(performer.causal_linear_attention_noncuda, eps=0.0) if causal else performer.linear_attention
    ours = Linear()(q, k, v, (Causal() if causal else Everything()).over(q[:, 0]))
    alike(ours, over(elu(q) + 1, elu(k) + 1, v), (q, k, v))


@few
@given(**SHAPE, length=LENGTH, other=some.none() | LENGTH, width=WIDTH, rank=some.integers(1, 9), one=some.booleans())
def test_linformer_is_theirs_of_any_length_and_across(seed, batch, heads, length, other, width, rank, one):
    torch.manual_seed(seed)
    theirs = LinformerSelfAttention(heads * width, 40, rank, heads, one_kv_head=one)
    x, context = torch.randn(batch, length, heads * width), torch.randn(batch, other or length, heads * width)
    context = x if other is None else context
    q, groups = split(theirs.to_q(x), heads), 1 if one else heads
    k, v = split(theirs.to_k(context), groups), split(theirs.to_v(context), groups)
    sight = Everything().over(x) if other is None else Everything().across(context, torch.arange(length)[None])
    shorten = {"shorten": torch.stack((theirs.proj_k.mT, theirs.proj_v.mT))}
    ours = theirs.to_out(joined(functional_call(Linformer(40, rank), shorten, (q, k, v, sight))))
    alike(ours, theirs(x, context), theirs.parameters())


@few
@given(
    **SHAPE, length=LENGTH, width=WIDTH, size=some.integers(1, 9), back=some.integers(1, 2), causal=some.booleans(),
    exactly=some.booleans(), short=some.integers(0, 5),
)  # fmt: skip
def test_windows_and_blocks_are_theirs(seed, batch, heads, length, width, size, back, causal, exactly, short):
    q, k, v = drawn(seed, batch, heads, length, width)
    lengths = torch.full((batch,), length)
    lengths[-1] = max(1, length - short)
    real = torch.arange(length) < lengths[:, None]
    ahead = back if exactly and not causal else 0
    theirs = LocalAttention(size, causal, back, ahead, autopad=True, exact_windowsize=exactly)
    near = Window(size * back + 1) if exactly else Local(size, size * back)  # theirs does not count the position itself
    mask = near & Padding(lengths) & (Causal() if causal else Everything())
    y, ours = theirs(q, k, v, mask=real), Softmax()(q, k, v, mask.over(q[:, 0]))
    alike(*(one.transpose(1, 2)[real] for one in (ours, y)), (q, k, v))


@few
@given(**SHAPE, width=some.integers(2, 6), rows=some.integers(1, 6), columns=some.integers(1, 7))
def test_axial_is_theirs_on_a_grid(seed, batch, heads, width, rows, columns):
    torch.manual_seed(seed)
    theirs = AxialAttention(heads * width, num_dimensions=2, heads=heads, dim_index=-1)
    grid = torch.randn(batch, rows, columns, heads * width)
    x = grid.flatten(1, 2)
    ways = [theirs.axial_attentions[n].fn for n in (1, 0)]  # ours begins along the row; its heads take turns
    made = [[split(part, heads) for part in (way.to_q(x), *way.to_kv(x).chunk(2, -1))] for way in ways]
    q, k, v = (torch.stack(both, 2).flatten(1, 2) for both in zip(*made, strict=True))
    y = Softmax()(q, k, v, Axial(2 * heads, columns).over(x)).unflatten(1, (heads, 2)).unbind(2)
    ours = sum(way.to_out(joined(part)) for way, part in zip(ways, y, strict=True))
    alike(ours, theirs(grid).flatten(1, 2), theirs.parameters())


@few
@given(
    seed=some.integers(0, 999), landmarks=some.integers(1, 6), times=some.integers(1, 5), width=WIDTH,
    iterations=some.integers(1, 6),
)  # fmt: skip
def test_nystromformer_is_theirs_of_one_head_and_whole_segments(seed, landmarks, times, width, iterations):
    # Theirs begins its inverse with the greatest sum in the whole batch, where the paper (Xiong et al., 2021)
    # takes each matrix by itself, as ours does; and a length that segments do not divide gets zeros that are seen.
    torch.manual_seed(seed)
    theirs = NystromAttention(width, width, 1, landmarks, iterations, residual=False)
    x = torch.randn(1, landmarks * times, width)
    q, k, v = (part.unsqueeze(1) for part in theirs.to_qkv(x).chunk(3, -1))
    ours = theirs.to_out(joined(Nystromformer(landmarks, iterations)(q, k, v, Everything().over(x))))
    alike(ours, theirs(x), theirs.parameters())


@few
@given(**SHAPE, length=some.integers(2, 37), width=WIDTH, clusters=some.integers(1, 5))
def test_routing_is_theirs_where_nobody_is_near_by_a_hair(seed, batch, heads, length, width, clusters):
    q, k, v = drawn(seed, batch, heads, length, width)
    size, ours = -(-length // clusters), Routing(heads, width, clusters)
    theirs = routing.KmeansAttention(clusters, size, heads, width).eval()
    ours.redraw(torch.Generator().manual_seed(seed))
    theirs.kmeans.means.copy_(normalize(ours.centres, dim=-1))
    theirs.kmeans.initted.fill_(True)  # theirs would look for centres of its own
    for x in (q, k):  # ours tells nearness in steps, so that equals are equals
        like = (normalize(x, dim=-1) @ theirs.kmeans.means.mT).sort(2, descending=True).values
        assume(size == length or (like[:, :, size - 1] - like[:, :, size]).min() > 1 / 2048)
    with patch.object(routing, "scatter_mean", partial(routing.scatter_mean, eps=1e-20)):  # who is in n clusters: n
        y = theirs(q, k, v)[0]
    alike(ours(q, k, v, Everything().over(q[:, 0])), y, (q, k, v))


@few
@given(**SHAPE, size=some.integers(1, 6), blocks=some.integers(1, 6), width=WIDTH, iterations=some.integers(0, 8))
def test_sinkhorn_is_theirs_by_the_same_scores(seed, batch, heads, size, blocks, width, iterations):
    # Theirs gives sorted keys for sorted values too, by mistake: keys are the values here. Its scores are noisy logs of
    # what is above zero, so that ours are put in their place, and sorted by their code; the last division of
    # ours is by rows, which then sum to one, and theirs and the paper's (Tay et al., 2020) by columns.
    q, k = drawn(seed, batch, heads, size * blocks, width, count=2)
    [compare] = drawn(seed + 1, heads, width, width, count=1)
    theirs = sinkhorn.SinkhornAttention(size, heads * width, width, heads, size * blocks)

    def sorting(q, k, topk):
        asked, met = (sinkhorn.bucket(blocks, x).mean(2) for x in (q, k))
        scores = asked @ compare.repeat(batch, 1, 1) @ met.mT / width**0.5 / 0.5
        mixed = sinkhorn.sinkhorn_sorting_operator(scores, iterations)
        return mixed / mixed.sum(-1, keepdim=True)

    with patch.object(theirs.sort_net, "forward", sorting):
        y = theirs(q, k, k)
    ours = Sinkhorn(heads, width, size, iterations, temperature=0.5)
    ours = functional_call(ours, {"compare": compare}, (q, k, k, Everything().over(q[:, 0])))
    alike(ours, y, (q, k, compare))


@few
@given(
    seed=some.integers(0, 999), heads=some.integers(1, 3), size=some.integers(2, 6), halves=some.integers(1, 4),
    width=WIDTH, rounds=some.integers(1, 4), short=some.integers(0, 4),
)  # fmt: skip
def test_reformer_is_theirs_where_no_chunk_comes_before_the_first(seed, heads, size, halves, width, rounds, short):
    # In theirs the first chunk looks back at the last one of another round, which the paper's formula (Kitaev et al.,
    # 2020) does not know: here the last chunk of every round is padding. Keys are given, of length one as theirs are;
    # those of `SharedQK` are the root of the width longer, as transformers' are.
    length, chunks = size * (2 * halves - 1) - short, 2 * halves
    assume(length > 1)  # the score of one who sees itself alone, -50,000, leaves theirs few digits
    qk, v = drawn(seed, 1, heads, length, width, count=2)
    theirs = LSHAttention(
        bucket_size=size, n_hashes=rounds, random_rotations_per_head=True, allow_duplicate_attention=False
    )
    hashed, real = theirs.hash_vectors, torch.arange(size * chunks) < length

    def padding_last(buckets, vectors, **given):
        found = hashed(buckets, vectors, **given).unflatten(1, (rounds, -1))
        return torch.where(real, found, buckets * torch.arange(1, rounds + 1)[:, None] - 1).flatten(1)

    torch.manual_seed(seed)
    with patch.object(theirs, "hash_vectors", padding_last):
        whole = [pad(x[0], (0, 0, 0, size * chunks - length)) for x in (qk, v)]
        y = theirs(*whole, input_mask=real.expand(heads, -1))[0][None, :, :length]
    ours = Reformer(heads, width, chunks, size, rounds)
    torch.manual_seed(seed)  # theirs draws its rotations anew at each call
    ours.directions.copy_(torch.randn(heads, width, rounds, halves).permute(2, 0, 1, 3))
    alike(ours(qk, normalize(qk, dim=-1), v, Everything().over(qk[:, 0])), y, (qk, v))
