"""How far kinds that stand in for softmax are from it on queries and keys that were learned, and not by chance."""

import pytest
import torch
from torch.nn.functional import cross_entropy

import heedful
from heedful.attention import Everything
from heedful.attention.mechanisms import Clustered, Informer, Nystromformer, Performer, Softmax

LENGTH, SYMBOLS, HEADS, KEY = 16, 8, 2, 8


@pytest.fixture(scope="module")
def learned():
    """Queries and keys of a softmax model that has learned to sort a little, in float64: B H T D each."""
    torch.manual_seed(0)
    sizes = {"width": HEADS * KEY, "heads": HEADS, "depth": 1, "hidden": 32, "length": LENGTH, "pool": "each"}
    model = heedful.build("predictor", vocab=4 + SYMBOLS, classes=SYMBOLS, **sizes)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(150):
        x = torch.randint(0, SYMBOLS, (32, LENGTH))
        optimiser.zero_grad()
        loss = cross_entropy(model(x + 4).flatten(0, 1), x.sort(-1).values.flatten())
        loss.backward()
        optimiser.step()
    assert loss < 1.6  # of 2.08 by chance
    with heedful.look(model) as seen, torch.no_grad():
        model(torch.randint(4, 4 + SYMBOLS, (8, LENGTH)))
    _, q, k, _ = seen.asked(seen.paths[0])
    return q.double(), k.double()


def by_chance(*learned):
    """As large as what was learned: smaller scores alone would bring any kind nearer to softmax."""
    coins = torch.Generator().manual_seed(1)
    return [torch.randn(x.shape, generator=coins, dtype=x.dtype) * x.square().mean().sqrt() for x in learned]


def apart(m, q, k, draws=1):
    """How far its weights are from those of softmax, as a share of these; the root mean square over some draws."""
    sight, found = Everything().over(q[:, 0]), []
    exact = Softmax().weights(q, k, sight)
    for seed in range(draws):
        if draws > 1:
            m.redraw(torch.Generator().manual_seed(seed))
        found.append((m.double().weights(q, k, sight) - exact).square().sum() / exact.square().sum())
    return float(torch.stack(found).mean().sqrt())


def test_an_estimate_gets_nearer_with_its_features_on_what_was_learned_too(learned):
    few, many = (apart(Performer(KEY, features), *learned, draws=8) for features in (16, 1024))
    assert many < 0.5 * few, (few, many)


def test_what_is_exact_in_the_limit_is_so_on_what_was_learned_too(learned):
    assert apart(Informer(factor=LENGTH), *learned) < 1e-10
    found = [apart(Nystromformer(landmarks, iterations=40), *learned) for landmarks in (2, 8, LENGTH)]
    print(f"nystromformer, {found}")  # on the way there more landmarks may be farther off: their inverse grows
    assert found[2] < 1e-8 < min(found[:2]), found


def test_clusters_are_measured_beside_chance_of_the_same_size(learned):
    few, many = (apart(Clustered(HEADS, KEY, clusters), *learned, draws=8) for clusters in (2, 64))
    chance = apart(Clustered(HEADS, KEY, 64), *by_chance(*learned), draws=8)
    print(f"clustered, 2: {few:.3f}, 64: {many:.3f}, 64 by chance: {chance:.3f}")
    assert many < few
