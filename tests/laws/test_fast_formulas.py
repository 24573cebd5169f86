"""What papers say of kinds that are made to be fast, by hand on a small case: loops over heads, rows and columns."""

import torch

from heedful.attention import Causal, Everything
from heedful.attention.mechanisms import (
    RFA,
    DenseSynthesizer,
    FactorisedSynthesizer,
    GatedRFA,
    Linear,
    Performer,
    RandomSynthesizer,
    Routing,
    Sinkhorn,
    TalkingHeads,
)
from tests.laws.cases import EXACT, stir

HEADS, LENGTH, WIDTH = 2, 6, 4


def asked():
    coins = torch.Generator().manual_seed(0)
    return (torch.randn(1, HEADS, LENGTH, WIDTH, generator=coins, dtype=torch.float64) for _ in range(3))


def over():
    return Everything().over(torch.empty(1, LENGTH))


def made(part, *given, **more):
    torch.manual_seed(0)
    return stir(part(*given, **more)).double()


def same(m, said):
    """Every row of every head is what is said of it: said(h, i)."""
    q, k, v = asked()
    y = m(q, k, v, over())
    for h in range(HEADS):
        for i in range(LENGTH):
            torch.testing.assert_close(y[0, h, i], said(h, i), **EXACT)


def shares(scores):
    total = sum(score.exp() for score in scores)
    return [score.exp() / total for score in scores]


def summed(weights, values):
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def portioned(products, values):
    return summed(products, values) / sum(products)


def test_linear_weights_are_products_of_elu_and_one():
    """Katharopoulos et al. (2020), equations 4 and 7."""
    q, k, v = (x[0] for x in asked())

    def features(x):
        return torch.stack([c + 1 if c > 0 else c.exp() for c in x])

    same(Linear(), lambda h, i: portioned([features(q[h, i]) @ features(k[h, j]) for j in range(LENGTH)], v[h]))


def test_performer_weights_are_products_of_positive_random_features():
    """Choromanski et al. (2021), lemma 1: exp(w.x - x.x / 2), of queries and keys over the root of the root of D."""
    m, (q, k, v) = made(Performer, WIDTH, features=5), (x[0] for x in asked())

    def features(x):
        x = x / WIDTH**0.25
        return torch.stack([(w @ x - x @ x / 2).exp() for w in m.directions])

    same(m, lambda h, i: portioned([features(q[h, i]) @ features(k[h, j]) for j in range(LENGTH)], v[h]))


def test_rfa_weights_are_products_of_random_sines_and_cosines():
    """Peng et al. (2021), equations 4 and 5, of queries and keys of length 1."""
    m, (q, k, v) = made(RFA, WIDTH, features=64), (x[0] for x in asked())

    def features(x):
        angles = [w @ x / (x @ x).sqrt() for w in m.directions]
        return torch.stack([angle.sin() for angle in angles] + [angle.cos() for angle in angles]) / 8

    same(m, lambda h, i: portioned([features(q[h, i]) @ features(k[h, j]) for j in range(LENGTH)], v[h]))


def test_gated_rfa_forgets_what_is_long_ago():
    """Peng et al. (2021), equation 7: what is known is kept by a gate, and the newest counts for the rest."""
    m, (q, k, v) = made(GatedRFA, HEADS, WIDTH, features=64), (x[0] for x in asked())

    def features(x):
        angles = [w @ x[:-1] / (x[:-1] @ x[:-1]).sqrt() for w in m.directions]
        return torch.stack([angle.sin() for angle in angles] + [angle.cos() for angle in angles]) / 8

    y = m(*asked(), Causal().over(torch.empty(1, LENGTH)))
    for h in range(HEADS):
        known, total = torch.zeros(128, WIDTH, dtype=torch.float64), torch.zeros(128, dtype=torch.float64)
        for i in range(LENGTH):
            gate = 1 / (1 + (-k[h, i, -1] - m.gate[h, 0, 0]).exp())
            known = gate * known + (1 - gate) * torch.outer(features(k[h, i]), v[h, i])
            total = gate * total + (1 - gate) * features(k[h, i])
            torch.testing.assert_close(y[0, h, i], features(q[h, i]) @ known / (features(q[h, i]) @ total), **EXACT)


def test_talking_heads_mix_scores_before_softmax_and_weights_after_it():
    """Shazeer et al. (2020), section 4, with as many heads of each kind."""
    m, (q, k, v) = made(TalkingHeads, HEADS), (x[0] for x in asked())

    def weights(h, i):
        scores = [[q[g, i] @ k[g, j] / WIDTH**0.5 for g in range(HEADS)] for j in range(LENGTH)]
        return shares([summed(m.before[h], scores[j]) for j in range(LENGTH)])

    def said(h, i):
        mixed = [weights(g, i) for g in range(HEADS)]
        return summed([summed(m.after[h], [one[j] for one in mixed]) for j in range(LENGTH)], v[h])

    same(m, said)


def test_synthesizers_score_without_keys():
    """Tay et al. (2021), sections 3.2 to 3.4: two layers on the query, a table, and a table of two factors."""
    q, _, v = (x[0] for x in asked())
    dense, table, thin = (
        made(DenseSynthesizer, HEADS, WIDTH, LENGTH),
        made(RandomSynthesizer, HEADS, LENGTH),
        made(FactorisedSynthesizer, HEADS, LENGTH, rank=2),
    )

    def hidden(h, i):
        return (q[h, i] @ dense.hidden[h]).clamp(min=0)

    same(dense, lambda h, i: summed(shares([hidden(h, i) @ dense.scored[h, :, j] for j in range(LENGTH)]), v[h]))
    same(table, lambda h, i: summed(shares([table.table[h, i, j] for j in range(LENGTH)]), v[h]))

    def pairs(h, i):
        return [thin.of_rows[h, i] @ thin.of_columns[h, j] for j in range(LENGTH)]

    same(thin, lambda h, i: summed(shares(pairs(h, i)), v[h]))


def test_sinkhorn_blocks_see_themselves_and_a_block_that_is_sorted_beside_them():
    """Tay et al. (2020), sections 3.1 and 3.2: divided by columns and rows in turn, then softmax over both blocks."""
    m, (q, k, v) = made(Sinkhorn, HEADS, WIDTH, size=2, iterations=3), (x[0] for x in asked())
    blocks = range(LENGTH // 2)

    def sorting(h):
        def mean(x, n):
            return (x[h, 2 * n] + x[h, 2 * n + 1]) / 2

        def score(n, o):
            return mean(q, n) @ m.compare[h] @ mean(k, o) / (WIDTH**0.5 * m.temperature)

        mixed = [shares([score(n, o) for o in blocks]) for n in blocks]
        for _ in range(3):
            column = [sum(mixed[n][o] for n in blocks) for o in blocks]
            mixed = [[mixed[n][o] / column[o] for o in blocks] for n in blocks]
            mixed = [[mixed[n][o] / sum(mixed[n]) for o in blocks] for n in blocks]
        return mixed

    def said(h, i):
        def beside(x, c):
            return summed(sorting(h)[i // 2], [x[h, 2 * o + c] for o in blocks])

        own = [2 * (i // 2), 2 * (i // 2) + 1]
        keys, values = ([x[h, own[0]], x[h, own[1]], beside(x, 0), beside(x, 1)] for x in (k, v))
        return summed(shares([q[h, i] @ key / WIDTH**0.5 for key in keys]), values)

    same(m, said)


def test_routing_centres_bring_their_nearest_queries_and_keys_together():
    """Roy et al. (2021), section 4.1: softmax among the T / clusters nearest of a centre, the mean over its centres."""
    m, (q, k, v) = made(Routing, HEADS, WIDTH, clusters=3), (x[0] for x in asked())

    def cosine(a, b):
        return a @ b / ((a @ a) * (b @ b)).sqrt()

    def nearest(x, h, centre):
        return sorted(range(LENGTH), key=lambda i: -float(cosine(x[h, i], m.centres[h, centre])))[: LENGTH // 3]

    def said(h, i):
        found = []
        for centre in range(3):
            if i in nearest(q, h, centre):
                met = nearest(k, h, centre)
                found.append(summed(shares([q[h, i] @ k[h, j] / WIDTH**0.5 for j in met]), [v[h, j] for j in met]))
        return sum(found) / len(found) if found else torch.zeros_like(v[h, i])

    same(m, said)
