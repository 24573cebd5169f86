"""Scores against their papers' formulas, written out pair by pair: a mechanism's law cannot tell a wrong definition."""

import math

import pytest
import torch

from heedful.attention import Everything
from heedful.attention.mechanisms import Additive, Dot, General, Scaled, Softmax

HEADS, ROWS, COLUMNS, WIDTH = 2, 3, 4, 5

FORMULAS = {
    "softmax": (Softmax(), lambda q, k, h: q @ k / math.sqrt(WIDTH)),
    "dot": (Dot(), lambda q, k, h: q @ k),
    "scaled, sharper": (Scaled(temperature=0.5), lambda q, k, h: 2.0 * (q @ k) / math.sqrt(WIDTH)),
    "scaled, flatter": (Scaled(temperature=4.0), lambda q, k, h: 0.25 * (q @ k) / math.sqrt(WIDTH)),
    "general": (general := General(HEADS, WIDTH), lambda q, k, h: q @ general.matrix[h] @ k),
    "additive": (additive := Additive(HEADS, WIDTH), lambda q, k, h: additive.vector[h, :, 0] @ torch.tanh(q + k)),
}


@pytest.mark.parametrize("name", FORMULAS)
@torch.no_grad()
def test_a_weight_is_the_softmax_of_the_papers_score(name):
    mechanism, score = FORMULAS[name]
    torch.manual_seed(0)
    for p in mechanism.double().parameters():
        p.normal_()
    q = torch.randn(1, HEADS, ROWS, WIDTH, dtype=torch.float64)
    k = torch.randn(1, HEADS, COLUMNS, WIDTH, dtype=torch.float64)
    sight = Everything().across(k[0, :1], torch.arange(ROWS)[None])
    weights = mechanism.weights(q, k, sight)
    for h in range(HEADS):
        for i in range(ROWS):
            scores = [float(score(q[0, h, i], k[0, h, j], h)) for j in range(COLUMNS)]
            total = sum(map(math.exp, scores))
            expected = torch.tensor([math.exp(s) / total for s in scores], dtype=torch.float64)
            torch.testing.assert_close(weights[0, h, i], expected, rtol=0.0, atol=1e-12)
