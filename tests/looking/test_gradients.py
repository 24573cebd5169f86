"""Slopes of an answer in each weight of attention: those of the definition, though no weight was ever made."""

import pytest
import torch

import heedful
from heedful.attention import Attention, Everything, Join, MultiHead
from heedful.attention.mechanisms import Softmax
from heedful.looking.gradients import keep_values, relevance
from heedful.looking.learned_patches import distances, filters, similarity


@pytest.mark.parametrize("groups", [2, 1])
def test_a_slope_is_that_of_the_weights_written_out(groups):
    torch.manual_seed(0)
    attention = Attention(MultiHead(8, heads=2, groups=groups), Softmax(), Join(8, 8)).double()
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    sight = Everything().over(x)
    with keep_values(attention) as found:
        answer = attention(x, sight).square().sum()
    (slope,) = found.gradients(answer).values()
    q, k, v = attention.project(x, sight)
    weights = attention.mechanism.weights(q, k, sight).detach().requires_grad_()
    again = attention.join(weights @ v.repeat_interleave(2 // groups, 1)).square().sum()
    torch.testing.assert_close(slope, torch.autograd.grad(again, weights)[0])
    torch.testing.assert_close(answer, again)


def test_feeling_changes_no_bit_and_leaves_no_hook():
    model = heedful.build("vit", channels=1, classes=3, high=8, wide=8, patch=4, width=8, heads=2, depth=2)
    images = torch.randn(1, 1, 8, 8)
    before = model(images)
    with keep_values(model) as found:
        during = model(images)
    assert torch.equal(before, during) and torch.equal(before, model(images))
    assert found.paths == ("encoder.blocks.0.attention", "encoder.blocks.1.attention")
    assert found.gradients(during[0, 1])["encoder.blocks.1.attention"].shape == (1, 2, 5, 5)


def test_relevance_by_hand():
    weights = torch.tensor([[[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0], [0.5, 0.5]]])
    slopes = torch.tensor([[[2.0, -1.0], [0.0, 4.0]], [[-1.0, 1.0], [2.0, 0.0]]])
    # what speaks for it, by the mean of heads: [[(1 + 0) / 2, 0], [(0 + 1) / 2, 3 / 2]], and each token itself
    one = torch.tensor([[1.5, 0.0], [0.5, 2.5]])
    torch.testing.assert_close(relevance([weights], [slopes]), one)
    torch.testing.assert_close(relevance([weights, weights], [slopes, slopes]), one @ one)


def test_filters_are_the_directions_that_a_matrix_looks_along():
    torch.manual_seed(0)
    strong, weak = torch.linalg.qr(torch.randn(12, 2)).Q.T
    matrix = torch.randn(50, 1) * 9 * strong + torch.randn(50, 1) * weak
    found = (filters(matrix, 3, 2).flatten(1) - 0.5) * 2
    assert found.shape == (2, 12) and found.abs().max() == pytest.approx(1)
    for one, wanted in zip(found, (strong, weak), strict=True):
        assert abs(float(torch.nn.functional.cosine_similarity(one, wanted, dim=0))) > 0.97


def test_positions_are_like_themselves_and_heads_look_as_far_as_their_weights_say():
    table = torch.randn(6, 8)
    alike = similarity(table, (2, 3))
    assert alike.shape == (6, 2, 3) and torch.allclose(alike.flatten(1).diagonal(), torch.ones(6))
    here, across = torch.eye(4), torch.eye(4)[[3, 2, 1, 0]]
    found = distances(torch.stack((here, across, torch.full((4, 4), 0.25))), (2, 2))
    torch.testing.assert_close(found, torch.tensor([0.0, 2**0.5, (2 + 2**0.5) / 4]))


def test_segments_are_the_heaviest_cells_that_hold_a_share():
    from heedful.looking.learned_patches import segments

    weights = torch.tensor([[[0.5, 0.1], [0.1, 0.3]], [[0.1, 0.2], [0.3, 0.4]]])
    assert segments(weights).tolist() == [[[1, 0], [0, 1]], [[0, 0], [1, 1]]]
    assert segments(weights[:1], 0.5).tolist() == [[[1, 0], [0, 0]]]
