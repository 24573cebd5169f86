"""Recurrent layers: the definition and torch's fused kernels are one, in values and in gradients."""

import itertools

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from heedful.blocks.recurrent_networks import CELLS, WEIGHTS, Recurrent, RecurrentStack

CLOSE = {"rtol": 0.0, "atol": 1e-10}
BATCH, LONGEST, INPUTS, WIDTH = 4, 7, 3, 5
SIZES = list(itertools.product(CELLS, (1, 3), (False, True)))


def pair(cell, depth, both_ways):
    """The fast stack and its definition, with the same weights."""
    torch.manual_seed(0)
    fast = Recurrent(cell, INPUTS, WIDTH, depth, both_ways).double()
    return fast, fast.definition()


def given(length=LONGEST):
    torch.manual_seed(1)
    return torch.randn(BATCH, length, INPUTS, dtype=torch.float64, requires_grad=True)


def gradients(stack, x, state, lengths):
    """What a stack says and the state that it leaves, and the gradients of its weights, its inputs and its state."""
    said, after = stack(x, lengths, state)
    torch.manual_seed(2)
    loss = sum((made * torch.randn(made.shape).double()).sum() for made in (said, after))
    weights = stack.in_torch() if isinstance(stack, RecurrentStack) else dict(stack.layers.named_parameters())
    names = sorted(weights)
    return said, after, *torch.autograd.grad(loss, [*(weights[name] for name in names), x, state])


@pytest.mark.parametrize(("cell", "depth", "both_ways"), SIZES)
@pytest.mark.parametrize("lengths", [None, (LONGEST, 3, 1, 5)])
def test_fused_kernels_equal_the_definition_in_values_and_gradients(cell, depth, both_ways, lengths):
    fast, slow = pair(cell, depth, both_ways)
    lengths = None if lengths is None else torch.tensor(lengths)
    state = torch.randn(BATCH, *fast.shape, dtype=torch.float64, requires_grad=True)
    ours, theirs = (gradients(stack, given(), state, lengths) for stack in (slow, fast))
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, two, **CLOSE)
    assert all(one.abs().max() > 0 for one in ours)


@pytest.mark.parametrize("cell", CELLS)
def test_one_cell_equals_that_of_torch(cell):
    slow = CELLS[cell](INPUTS, WIDTH).double()
    fast = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}[cell](INPUTS, WIDTH).double()
    fast.load_state_dict({name: slow.get_parameter(name) for name in WEIGHTS})
    state, x = torch.randn(BATCH, slow.parts, WIDTH, dtype=torch.float64), given()[:, 0]
    made = fast(x, tuple(state.unbind(1)) if slow.parts > 1 else state[:, 0])
    torch.testing.assert_close(slow(x, state), torch.stack(made, 1) if slow.parts > 1 else made[:, None], **CLOSE)


@pytest.mark.parametrize(("cell", "depth", "both_ways"), SIZES)
def test_weights_go_both_ways_and_come_back_the_same(cell, depth, both_ways):
    fast, _ = pair(cell, depth, both_ways)
    slow = RecurrentStack(cell, INPUTS, WIDTH, depth, both_ways).double()
    fast.layers.load_state_dict(slow.in_torch())
    torch.testing.assert_close(fast(given())[0], slow(given())[0], **CLOSE)
    again = fast.definition().in_torch()
    assert all(torch.equal(weight, again[name]) for name, weight in slow.in_torch().items())


@pytest.mark.parametrize("stack", [0, 1], ids=["fused", "definition"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_state_that_is_handed_on_goes_on_as_if_nothing_had_been_cut(cell, stack):
    layers, x = pair(cell, 2, False)[stack], given()
    whole, last = layers(x)
    head, state = layers(x[:, :3])
    tail, after = layers(x[:, 3:], state=state)
    torch.testing.assert_close(torch.cat((head, tail), 1), whole, **CLOSE)
    torch.testing.assert_close(after, last, **CLOSE)


@pytest.mark.parametrize("stack", [0, 1], ids=["fused", "definition"])
@pytest.mark.parametrize(("cell", "depth", "both_ways"), SIZES)
def test_a_padded_batch_equals_each_sequence_alone(cell, depth, both_ways, stack):
    layers, x, lengths = pair(cell, depth, both_ways)[stack], given(), (LONGEST, 3, 1, 5)
    said, after = layers(x, torch.tensor(lengths))
    for at, length in enumerate(lengths):
        alone, last = layers(x[at : at + 1, :length])
        torch.testing.assert_close(said[at, :length], alone[0], **CLOSE)
        torch.testing.assert_close(after[at], last[0], **CLOSE)
        assert not said[at, length:].any()


def test_layers_learn_with_a_share_of_what_lies_between_them_left_out():
    torch.manual_seed(0)
    for kind in (Recurrent, RecurrentStack):
        layers, x = kind("gru", INPUTS, WIDTH, 2, dropout=0.5).double(), given()
        assert not torch.equal(layers(x)[0], layers(x)[0])
        layers.eval()
        assert torch.equal(layers(x)[0], layers(x)[0])


@pytest.mark.parametrize("lengths", [None, (LONGEST,) * BATCH])
@pytest.mark.parametrize("cell", CELLS)
def test_the_operations_of_fused_kernels_are_counted_as_those_of_the_definition(cell, lengths):
    fast = Recurrent(cell, INPUTS, WIDTH, 2, both_ways=True)
    x, lengths, found = given().detach().float(), None if lengths is None else torch.tensor(lengths), []
    for stack in (fast, fast.definition()):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            stack(x, lengths)
        found.append(counter.get_total_flops())
    assert found[0] == found[1] > 0
