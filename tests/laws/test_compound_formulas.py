"""What papers say of stacks, pairs, projections and joins, by hand: loops over layers, heads, rows and columns."""

import pytest
import torch

from heedful.attention import (
    Attention,
    Blocks,
    Causal,
    Collaborative,
    Documents,
    Everything,
    Join,
    MultiHead,
    Prefix,
    Routed,
    Window,
)
from heedful.attention.mechanisms import RandomSynthesizer, Softmax
from heedful.blocks import (
    ETC,
    Block,
    BPTransformer,
    FeedForward,
    GlobalRows,
    Induced,
    LazyFormer,
    Luna,
    Poolingformer,
    Predictive,
    RealFormer,
    StarTransformer,
)
from heedful.blocks.stacks.bp import LEVEL
from heedful.looking import look
from tests.laws.cases import EXACT, stir

LENGTH, WIDTH, HEADS, SIZE, DEPTH = 5, 4, 2, 2, 3


def states(length=LENGTH):
    return torch.randn(1, length, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def attention():
    return Attention(MultiHead(WIDTH, HEADS), Softmax(), Join(WIDTH, WIDTH))


def blocks():
    return [Block(WIDTH, attention(), FeedForward(WIDTH, 3)) for _ in range(DEPTH)]


def made(part):
    torch.manual_seed(0)
    return stir(part()).double()


# ------------------------------------------------------------- by hand: x is a list of vectors, one for each position


def linear(layer, x):
    return layer.weight @ x + layer.bias


def normed(layer, x):
    centred = x - x.sum() / len(x)
    return centred / (centred.square().sum() / len(x) + layer.eps).sqrt() * layer.weight + layer.bias


def projected(project, x):
    """Queries, keys and values: for each position, a vector for each head."""
    every = [linear(project.to_qkv, one).view(3, HEADS, SIZE) for one in x]
    return ([one[part] for one in every] for part in range(3))


def scored(queries, keys):
    """Scores by (head, row, column)."""
    return {
        (h, i, j): queries[i][h] @ keys[j][h] / SIZE**0.5
        for h in range(HEADS)
        for i in range(len(queries))
        for j in range(len(keys))
    }


def mixed(scores, values, rows, sees=lambda i, j: True):
    """What each row takes of the values that it sees, head by head."""
    taken = []
    for i in range(rows):
        seen = [j for j in range(len(values)) if sees(i, j)]
        total = [sum(scores[h, i, j].exp() for j in seen) for h in range(HEADS)]
        taken.append([sum(scores[h, i, j].exp() / total[h] * values[j][h] for j in seen) for h in range(HEADS)])
    return taken


def joined(join, taken):
    return [linear(join, torch.cat(heads)) for heads in taken]


def plainly(one, x, sees=lambda i, j: True):
    """One attention of a sequence to itself."""
    q, k, v = projected(one.project, x)
    return joined(one.join, mixed(scored(q, k), v, len(x), sees))


def across(one, x, other):
    """What x takes of another sequence."""
    (q, _, _), (_, k, v) = projected(one.project, x), projected(one.project, other)
    return joined(one.join, mixed(scored(q, k), v, len(x)))


def through(stack, x, attend):
    """Pre-norm blocks around attend(number, its attention, states)."""
    for number, one in enumerate(stack.blocks):
        told = attend(number, one.attention, [normed(one.norm1, s) for s in x])
        x = [s + y for s, y in zip(x, told, strict=True)]
        hidden = [linear(one.feedforward.up, normed(one.norm2, s)).clamp(min=0) for s in x]
        x = [s + linear(one.feedforward.down, h) for s, h in zip(x, hidden, strict=True)]
    return x


def same(part, x, said):
    torch.testing.assert_close(part(x, Everything().over(x))[0], torch.stack(said), **EXACT)


# ------------------------------------------------------------------------------------------------------------- stacks


def test_realformer_adds_the_scores_of_the_layer_before():
    """He et al. (2021): ResidualAttention(Q, K, V, Prev) = softmax(QK / sqrt(d) + Prev) V."""
    stack, x, before = made(lambda: RealFormer(blocks())), states(), {}

    def attend(number, one, y):
        q, k, v = projected(one.project, y)
        for place, score in scored(q, k).items():
            before[place] = score + before.get(place, 0.0)
        return joined(one.join, mixed(before, v, LENGTH))

    same(stack, x, through(stack, x[0], attend))


def test_realformer_hands_on_scores_that_no_keys_made():
    """Tables of a random Synthesizer, which are scores as any: each layer has the sum of those up to its own."""

    def one():
        looks = Attention(MultiHead(WIDTH, HEADS), RandomSynthesizer(HEADS, LENGTH), Join(WIDTH, WIDTH))
        return Block(WIDTH, looks, FeedForward(WIDTH, 3))

    stack, x = made(lambda: RealFormer([one() for _ in range(DEPTH)])), states()
    with look(stack) as seen:
        stack(x, Everything().over(x))
    tables = torch.stack([block.attention.mechanism.table for block in stack.blocks]).cumsum(0)
    for path, table in zip(sorted(seen.paths), tables, strict=True):
        torch.testing.assert_close(seen.weights(path)[0], table.softmax(-1), **EXACT)


@pytest.mark.parametrize("every", [2, 3])
def test_lazyformer_layers_look_where_the_first_of_their_group_does(every):
    """Ying et al. (2021): weights are made in the first layer of each lazy block, and its values in all."""
    stack, x, first = made(lambda: LazyFormer(blocks(), every=every)), states(), {}

    def attend(number, one, y):
        q, k, v = projected(one.project, y)
        if number in (0, every):
            first.update(scored(q, k))
        return joined(one.join, mixed(first, v, LENGTH))

    same(stack, x, through(stack, x[0], attend))


@pytest.mark.parametrize("mask", [Window(2), Blocks(2), Documents(torch.zeros(1, 99).long()), Causal() | Prefix(2)])
def test_predictive_refuses_masks_that_its_convolution_would_pass(mask):
    stack, x = made(lambda: Predictive(blocks(), heads=HEADS)), states()
    with pytest.raises(ValueError, match="predictive convolves scores over rows"):
        stack(x, mask.over(x))


def test_predictive_mixes_scores_with_those_before_convolved():
    """Wang et al. (2021): scores are share * conv(those of the layer before) + (1 - share) * own."""
    stack, x, before = made(lambda: Predictive(blocks(), heads=HEADS)), states(), {}

    def convolved(kernel, h, i, j):
        around = [(g, a, b) for g in range(HEADS) for a in range(3) for b in range(3)]
        return sum(kernel[h, g, a, b] * before.get((g, i + a - 1, j + b - 1), 0.0) for g, a, b in around)

    def attend(number, one, y):
        q, k, v = projected(one.project, y)
        own = scored(q, k)
        if number:
            share, kernel = stack.share[number - 1], stack.kernel[number - 1]
            own = {at: share * convolved(kernel, *at) + (1 - share) * score for at, score in own.items()}
        before.update(own)
        return joined(one.join, mixed(own, v, LENGTH))

    same(stack, x, through(stack, x[0], attend))


def test_luna_packs_the_sequence_and_looks_at_what_was_packed():
    """Ma et al. (2021): packed = attend(P, X), out = attend(X, packed), and the next P = norm(P + packed)."""
    stack, x = made(lambda: Luna(blocks(), width=WIDTH, heads=HEADS, memory=2)), states()
    memory = [*stack.memory]

    def attend(number, one, y):
        pack = stack.packs[number]
        q = [linear(pack.project.to_q, p).view(HEADS, SIZE) for p in memory]
        kv = [linear(pack.project.to_kv, s).view(2, HEADS, SIZE) for s in y]
        scores = scored(q, [pair[0] for pair in kv])
        packed = joined(pack.join, mixed(scores, [pair[1] for pair in kv], len(q)))
        if number + 1 < DEPTH:
            memory[:] = [normed(stack.norms[number], p + new) for p, new in zip(memory, packed, strict=True)]
        return across(one, y, packed)

    same(stack, x, through(stack, x[0], attend))


def test_star_sees_neighbours_and_a_relay_that_begins_as_the_mean():
    stack, x = made(lambda: StarTransformer(blocks())), states()
    relay = sum(x[0]) / LENGTH

    def sees(i, j):
        return 0 in (i, j) or abs(i - j) <= 1

    whole = through(stack, [relay, *x[0]], lambda number, one, y: plainly(one, y, sees))
    same(stack, x, whole[1:])


def test_etc_has_global_tokens_that_see_all_and_are_seen_by_all():
    stack, x = made(lambda: ETC(blocks(), width=WIDTH, size=2, everywhere=2)), states()

    def sees(i, j):
        return min(i, j) < 2 or abs(i - j) < 2

    whole = through(stack, [*stack.tokens, *x[0]], lambda number, one, y: plainly(one, y, sees))
    same(stack, x, whole[2:])


def partitioned(i, size, length):
    """The spans (from, up to) that the token at i sees: Ye et al. (2019), by two pointers that climb the tree."""
    seen = {(i, i + 1)}
    for turn in (1, -1):
        at, wide, half = i + turn, 1, False  # the next node, how wide one is, and whether half of it is seen already
        while wide <= length:
            for _ in range(size):
                span = (at * wide, at * wide + wide)
                if half:
                    span = (span[0] + wide // 2, span[1]) if turn == 1 else (span[0], span[1] - wide // 2)
                if 0 <= span[0] < length:
                    seen.add(span)
                at, half = at + turn, False
            half, at, wide = at % 2 == (turn == 1), at // 2, 2 * wide
    return seen


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 5, 8, 13])
def test_what_a_token_sees_in_bp_is_a_partition_of_the_sequence(size, length):
    stack, x = BPTransformer([], size=size), states(length)
    nodes, sight = stack.laid(x, torch.ones(1, length, dtype=torch.bool), Everything().over(x))
    assert nodes.shape[1] == sight.rows.shape[1] - length
    places = [(at % LEVEL, at % LEVEL + (1 << at // LEVEL)) for at in sight.columns[0].tolist()]
    for i, seen in enumerate(sight.dense[0, 0, nodes.shape[1] :]):
        found = [place for place, here in zip(places, seen, strict=True) if here]
        assert set(found) == partitioned(i, size, length)
        assert sorted(t for a, b in found for t in range(a, min(b, length))) == [*range(length)], "each token once"


def test_bp_sees_tokens_near_by_and_spans_that_grow_with_the_distance():
    stack, x = made(lambda: BPTransformer(blocks(), size=1)), states()
    spans = [(0, 2), (2, 4), (4, 6), (0, 4), (4, 8)]  # a tree over five tokens
    nodes = [sum(x[0][a:b]) / len(x[0][a:b]) for a, b in spans]
    places = [*spans, *((t, t + 1) for t in range(LENGTH))]

    def sees(i, j):
        (a, b), (c, d) = places[i], places[j]
        if b - a > 1:  # a span sees itself and its tokens
            return i == j or (d - c == 1 and a <= c < b)
        return places[j] in partitioned(a, 1, LENGTH)

    whole = through(stack, [*nodes, *x[0]], lambda number, one, y: plainly(one, y, sees))
    same(stack, x, whole[len(spans) :])


# -------------------------------------------------------------------------------------------------------------- pairs


def test_isab_gathers_by_points_and_spreads_what_they_found():
    """Lee et al. (2019): H = norm(I + attend(I, X)), and then attend(X, H)."""
    pair, x = made(lambda: Induced(attention, WIDTH, points=2)), states()
    gathered = across(pair.gather, pair.points, x[0])
    found = [normed(pair.norm, p + new) for p, new in zip(pair.points, gathered, strict=True)]
    same(pair, x, across(pair.spread, x[0], found))


def test_poolingformer_adds_what_is_seen_in_a_window_and_through_means():
    """Zhang et al. (2021): Y within a window of X, Z within a wider one of the pooled keys and values of Y, Y + Z."""
    pair, x = made(lambda: Poolingformer(attention, size=2, far=4, stride=2)), states()
    near = plainly(pair.near, x[0], lambda i, j: abs(i - j) < 2)
    q, k, v = projected(pair.wide.project, near)
    keys, values = ([(s[0] + s[1]) / 2, (s[2] + s[3]) / 2, s[4]] for s in (k, v))
    far = joined(pair.wide.join, mixed(scored(q, keys), values, LENGTH, lambda i, g: abs(i - 2 * g) < 4))
    same(pair, x, [y + z for y, z in zip(near, far, strict=True)])


def test_global_rows_of_longformer_look_with_projections_of_their_own():
    """Beltagy et al. (2020), section 3.1: Qs, Ks, Vs for the window, Qg, Kg, Vg for global attention."""
    pair, x = made(lambda: GlobalRows(attention, size=2, everywhere=1)), states()
    own, whole = [*projected(pair.near.project, x[0])], [*projected(pair.project, x[0])]

    def sees(i, j):
        return 0 in (i, j) or abs(i - j) < 2

    near, first = (mixed(scored(q, k), v, LENGTH, sees) for q, k, v in (own, whole))
    same(pair, x, joined(pair.near.join, [first[0], *near[1:]]))


# ------------------------------------------------------------------------------------------------ projections and joins


def test_collaborative_heads_weigh_the_channels_that_they_share():
    """Cordonnier et al. (2020), equation 6: a score is X Wq diag(m) Wk X, m being the head's."""
    project, x = made(lambda: Collaborative(WIDTH, HEADS, key=3, value=SIZE)), states()
    q, k, v = project(x, Everything().over(x))
    every = [linear(project.to_qkv, one).split([3, 3, WIDTH]) for one in x[0]]
    for h in range(HEADS):
        for i in range(LENGTH):
            for j in range(LENGTH):
                score = sum(every[i][0][c] * project.mixing[h, 0, c] * every[j][1][c] for c in range(3))
                torch.testing.assert_close(q[0, h, i] @ k[0, h, j], score, **EXACT)
            torch.testing.assert_close(v[0, h, i], every[i][2].view(HEADS, SIZE)[h], **EXACT)


def test_routed_heads_are_heard_as_far_as_they_agree():
    """Li et al. (2019), algorithm 1: simple routing, with Sabour et al.'s squash."""
    join = made(lambda: Routed(HEADS, SIZE, WIDTH, iterations=3))
    y = torch.randn(1, HEADS, 3, SIZE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for t in range(3):
        votes = [[y[0, h, t] @ join.votes[h, p] for p in range(HEADS)] for h in range(HEADS)]
        agreed = torch.zeros(HEADS, HEADS, dtype=torch.float64)
        for _ in range(3):
            shares = [agreed[h].exp() / agreed[h].exp().sum() for h in range(HEADS)]
            sums = [sum(shares[h][p] * votes[h][p] for h in range(HEADS)) for p in range(HEADS)]
            parts = [s * (s @ s) / (1 + s @ s) / (s @ s).sqrt() for s in sums]
            agreed = torch.stack(
                [torch.stack([agreed[h, p] + votes[h][p] @ parts[p] for p in range(HEADS)]) for h in range(HEADS)]
            )
        torch.testing.assert_close(join(y)[0, t], linear(join.matrix, torch.cat(parts)), **EXACT)
