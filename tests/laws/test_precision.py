"""Lower precision on a CPU: short sequences are weighed in float32, which is as exact as can be, and faster there."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from heedful.attention import Causal, Padding
from heedful.attention.mechanisms import Softmax
from tests.laws.cases import BATCH, HEADS, LENGTH


@pytest.mark.parametrize("mask", [Causal(), Padding(torch.tensor([LENGTH, 4, 0]))], ids=["causal", "padding"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [True, False])
def test_short_sequences_are_weighed_in_float32(dtype, mask, autocast):
    torch.manual_seed(0)
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, 8).to(dtype).requires_grad_() for _ in range(3))
    sight = mask.over(torch.empty(BATCH, LENGTH))
    seen = sight.dense | sight.blind
    exact = scaled_dot_product_attention(q.float(), k.float(), v.float(), seen).masked_fill(sight.blind, 0.0)
    with torch.autocast("cpu", dtype, enabled=autocast):
        y = Softmax()(q, k, v, sight)
    assert y.dtype == dtype
    assert torch.equal(y, exact.to(dtype))
    along = torch.randn_like(exact).to(dtype)
    ours = torch.autograd.grad(y, (q, k, v), along)
    theirs = torch.autograd.grad(exact, (q, k, v), along.float())
    assert all(a.dtype == dtype and torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
