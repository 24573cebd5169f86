"""Recurrent networks (RNN, GRU, LSTM): cells and stacks to be read, and torch's fused kernels for the same sums.

A state is one tensor, B P L M: the P parts of a cell's state (an LSTM has two) of all L layers, of which one that reads
both ways counts twice. So whoever keeps it, such as a search, can take some of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import pack_padded_sequence as pack
from torch.nn.utils.rnn import pad_packed_sequence as unpack
from torch.utils.flop_counter import register_flop_formula

from heedful.blocks.block import Dropout

WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class Cell(nn.Module):
    """Recurrent cell: an input and the state before it become the next state, whose first part is what it says."""

    gates: ClassVar[int]
    parts: ClassVar[int] = 1

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(self.gates * width, inputs))
        self.weight_hh = nn.Parameter(torch.empty(self.gates * width, width))
        self.bias_ih = nn.Parameter(torch.empty(self.gates * width))
        self.bias_hh = nn.Parameter(torch.empty(self.gates * width))
        for weight in self.parameters():
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def read(self, x: Tensor) -> Tensor:
        """What an input says to every gate, whatever the state: B ... I -> B ... G M."""
        return linear(x, self.weight_ih, self.bias_ih).unflatten(-1, (self.gates, -1))

    def recalled(self, state: Tensor) -> Tensor:
        """What the state says to every gate: B P M -> B G M."""
        return linear(state[:, 0], self.weight_hh, self.bias_hh).unflatten(-1, (self.gates, -1))

    def forward(self, x: Tensor, state: Tensor) -> Tensor:  # B I, B P M -> B P M
        return self.step(self.read(x), state)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state, of what an input says to the gates (B G M) and the state before it."""
        raise NotImplementedError


class ElmanCell(Cell):
    """Simple recurrent cell (RNN: Elman, 1990): a tanh of the input and of what was said last."""

    gates: ClassVar[int] = 1

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        return (x + self.recalled(state)).tanh()


class GRUCell(Cell):
    """Gated recurrent unit (Cho et al., 2014): a gate says how much of the old state is kept, another what is read."""

    gates: ClassVar[int] = 3

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        old = self.recalled(state)
        reset, keep = (x[:, :2] + old[:, :2]).sigmoid().unbind(1)
        new = (x[:, 2] + reset * old[:, 2]).tanh()
        return (keep * state[:, 0] + (1 - keep) * new).unsqueeze(1)


class LSTMCell(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber, 1997): a memory cell that is added to and not overwritten."""

    gates: ClassVar[int] = 4
    parts: ClassVar[int] = 2

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        write, keep, new, show = (x + self.recalled(state)).unbind(1)
        memory = keep.sigmoid() * state[:, 1] + write.sigmoid() * new.tanh()
        return torch.stack((show.sigmoid() * memory.tanh(), memory), 1)


CELLS: Mapping[str, type[Cell]] = {"rnn": ElmanCell, "gru": GRUCell, "lstm": LSTMCell}
FUSED: Mapping[str, Any] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Layers(nn.Module):
    """What both stacks of recurrent layers share: their sizes, and the state with which a sequence begins."""

    def __init__(self, cell: str, inputs: int, width: int, depth: int = 1, both_ways: bool = False) -> None:
        super().__init__()
        self.cell, self.inputs, self.width, self.depth, self.ways = cell, inputs, width, depth, 1 + both_ways

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of a sequence's state: parts, layers, width."""
        return CELLS[self.cell].parts, self.depth * self.ways, self.width

    def begun(self, x: Tensor, state: Tensor | None) -> Tensor:
        """The state with which sequences begin: zeros where none is handed on."""
        return x.new_zeros(x.shape[0], *self.shape) if state is None else state


class RecurrentStack(Layers):
    """Recurrent layers as their definition, to be read: each layer reads what the one below says, step by step."""

    def __init__(
        self, cell: str, inputs: int, width: int, depth: int = 1, both_ways: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__(cell, inputs, width, depth, both_ways)
        read = [inputs, *[self.ways * width] * (depth - 1)]
        self.cells = nn.ModuleList(CELLS[cell](one, width) for one in read for _ in range(self.ways))
        self.drop = Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor | None = None, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What the last layer says at each step, and the state after the last: B T I -> B T M, B P L M."""
        lengths = x.new_full(x.shape[:1], x.shape[1]) if lengths is None else lengths
        there, ended = torch.arange(x.shape[1], device=x.device) < lengths[:, None], []
        for layer, each in enumerate(self.begun(x, state).split(self.ways, 2)):
            x, last = self.layer(layer, self.drop(x) if layer else x, there, each)
            ended.append(last)
        return x, torch.cat(ended, 2)

    def layer(self, layer: int, x: Tensor, there: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """What one layer says, of one way or of both, and its last state."""
        cells = self.cells[layer * self.ways : (layer + 1) * self.ways]
        ways = [run(cell, x, there, state[:, :, at], backwards=at == 1) for at, cell in enumerate(cells)]
        return torch.cat([said for said, _ in ways], -1), torch.stack([last for _, last in ways], 2)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """The state behind one more input, of what that says to the gates of the first layer: B G M, B P L M."""
        after: list[Tensor] = []
        for layer, cell in enumerate(self.cells):
            assert isinstance(cell, Cell)
            x = cell.read(self.drop(after[-1][:, 0])) if layer else x
            after.append(cell.step(x, state[:, :, layer]))
        return torch.stack(after, 2)

    def in_torch(self) -> dict[str, Tensor]:
        """Its weights by the names that torch.nn gives them, `weight_ih_l0_reverse`."""
        return {
            self.name(at, one): self.cells[at].get_parameter(one) for at in range(len(self.cells)) for one in WEIGHTS
        }

    @torch.no_grad()
    def take_from(self, named: Mapping[str, Tensor]) -> None:
        """Takes its weights over from those that torch.nn names."""
        for name, weight in self.in_torch().items():
            weight.copy_(named[name])

    def name(self, at: int, weight: str) -> str:
        """What torch.nn calls a weight of the cell at a place."""
        layer, way = divmod(at, self.ways)
        return f"{weight}_l{layer}{'_reverse' if way else ''}"


def run(cell: Any, x: Tensor, there: Tensor, state: Tensor, backwards: bool) -> tuple[Tensor, Tensor]:
    """A cell along a sequence: what it says at each step, nothing where there is no input, and its last state."""
    said, order = [torch.zeros_like(state[:, 0])] * x.shape[1], range(x.shape[1])
    for at in reversed(order) if backwards else order:
        real = there[:, at, None]
        state = torch.where(real[..., None], cell(x[:, at], state), state)
        said[at] = torch.where(real, state[:, 0], 0.0)
    return torch.stack(said, 1), state


@register_flop_formula(torch.ops.aten.mkldnn_rnn_layer)
def fused_operations(x: Sequence[int], read: Sequence[int], recalled: Sequence[int], *rest: Any, **more: Any) -> int:
    """The operations of a fused layer on a CPU, of the shapes of its input and its two matrices; torch counts none."""
    return 2 * math.prod(x[:-1]) * (math.prod(read) + math.prod(recalled))


@register_flop_formula(torch.ops.aten._cudnn_rnn)
def cudnn_operations(x: Sequence[int], weights: Sequence[Sequence[int]], *rest: Any, **more: Any) -> int:
    """The same of all layers on a GPU, of the shapes of the input and of all weights."""
    return 2 * math.prod(x[:-1]) * sum(math.prod(shape) for shape in weights if len(shape) == 2)


class Recurrent(Layers):
    """Recurrent layers by torch's fused kernels, whole sequences in one call; the law: they equal `RecurrentStack`."""

    def __init__(
        self, cell: str, inputs: int, width: int, depth: int = 1, both_ways: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__(cell, inputs, width, depth, both_ways)
        between = dropout if depth > 1 else 0.0  # torch warns of one behind the last layer
        self.layers = FUSED[cell](inputs, width, depth, batch_first=True, dropout=between, bidirectional=both_ways)

    def forward(self, x: Tensor, lengths: Tensor | None = None, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What the last layer says at each step, and the state after the last: B T I -> B T M, B P L M."""
        given = self.begun(x, state).permute(1, 2, 0, 3).contiguous()  # P L B M
        if lengths is None:
            said, after = self.fused(x, given)
        else:
            packed, after = self.fused(pack(x, lengths.cpu(), batch_first=True, enforce_sorted=False), given)
            said, _ = unpack(packed, batch_first=True, total_length=x.shape[1])
        return said, after.permute(2, 0, 1, 3)

    def fused(self, x: Any, state: Tensor) -> tuple[Any, Tensor]:
        """The same as torch takes it: an LSTM's state is a pair there, and that of all others a tensor."""
        if len(state) == 1:
            said, after = self.layers(x, state[0])
            return said, after[None]
        said, parts = self.layers(x, tuple(state))
        return said, torch.stack(parts)

    def definition(self) -> RecurrentStack:
        """The same to be read, its weights taken over."""
        like = next(self.parameters())
        made = RecurrentStack(self.cell, self.inputs, self.width, self.depth, self.ways == 2, self.layers.dropout)
        made.to(like).take_from(dict(self.layers.named_parameters()))
        return made.train(self.training)
