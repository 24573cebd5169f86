"""Compiled, a forward is one graph with the same numbers: sights, masks, biases and rotary positions break none."""

import pytest
import torch
from torch import nn

from heedful.attention import Across, Causal, Context, CrossAttention, Join, Padding, Rotary
from heedful.attention.mechanisms import Softmax
from heedful.blocks import CrossBlock, FeedForward, Stack
from heedful.models import part_tables
from tests.laws import cases
from tests.laws.cases import HEADS, LENGTH, MECHANISMS, WIDTH, agree, parameters, stack, states, stir

LENGTHS = torch.tensor([LENGTH, 4, 0])


class Encoder(nn.Module):
    def __init__(self, blocks, mask, bias):
        super().__init__()
        self.blocks, self.mask, self.bias = blocks, mask, bias

    def forward(self, x):
        return self.blocks(x, self.mask.over(x, bias=self.bias))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        cross = CrossAttention(Across(WIDTH, 2, position=Rotary()), Softmax(), Join(WIDTH, WIDTH))
        block = CrossBlock(WIDTH, cases.attention("softmax", HEADS, Rotary()), cross, FeedForward(WIDTH, 11))
        self.blocks = Stack([block, block])

    def forward(self, x, source):
        return self.blocks(x, Causal().over(x), Context(source, Padding(LENGTHS)))


@pytest.fixture(autouse=True)
def _anew() -> None:
    torch.compiler.reset()


@pytest.mark.parametrize("word", [word for word in MECHANISMS if part_tables.MECHANISMS[word].card.tier == "A"])
def test_a_compiled_stack_is_one_graph_with_the_same_numbers(word):
    blocks, x = stack(word, position=Rotary()), states()
    axes = {
        "mask": ["causal & padding"],
        "bias": ["none", "buckets"][: 2 if word == "softmax" else 1],
        "groups": [2],
        "value": [cases.VALUE],
    }
    for case in cases.cases(word, **axes):
        model = Encoder(blocks, cases.masks()[case.mask], case.seen().bias)
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        agree(compiled(x), model(x), [x, *parameters(model)], case)


def test_a_compiled_decoder_is_one_graph_with_the_same_numbers():
    model, x, source = stir(Decoder()).double(), states(), states(length=LENGTH + 2)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    agree(compiled(x, source), model(x, source), [x, source, *parameters(model)], "decoder")
