"""Scores of a vocabulary that a GPU likes less are those of torch's own product, and so are their gradients."""

from contextlib import nullcontext

import pytest
import torch
from torch.nn.functional import cross_entropy

from heedful.outputs import token_output
from heedful.outputs.token_output import NextToken


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("vocab", [1, 33, 64, 127])
def test_rows_of_zeros_beneath_change_neither_scores_nor_gradients(vocab, bias, low, monkeypatch):
    torch.manual_seed(0)
    outputs = NextToken(16, vocab, bias=bias)
    answer, x = torch.randint(vocab, (10,)), torch.randn(2, 5, 16, requires_grad=True)
    made = []
    for even in (False, True):
        monkeypatch.setattr(token_output, "uneven", lambda x, weight, even=even: even)
        with torch.autocast("cpu", torch.bfloat16) if low else nullcontext():
            scores = outputs(x)
            loss = cross_entropy(scores.flatten(0, 1).float(), answer)
        assert scores.shape == (2, 5, vocab) and scores.dtype == (torch.bfloat16 if low else torch.float32)
        made.append([scores, *torch.autograd.grad(loss, [x, *outputs.parameters()])])
    for one, other in zip(*made, strict=True):
        torch.testing.assert_close(one, other, rtol=0.02 if low else 1e-5, atol=1e-2 if low else 1e-6)
