"""Positions that are given with the inputs: added to them, or set beside them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from heedful.errors import Refusal


class Position(nn.Module):
    """Tells the inputs (B T M) where they stand (B|1 T). `room` is how many channels it needs for itself."""

    room: int = 0

    def forward(self, x: Tensor, at: Tensor) -> Tensor:  # B T (M - room), B|1 T -> B T M
        raise NotImplementedError


class NoPosition(Position):
    """Nothing: what follows treats its inputs as a set."""

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return x


class Sine(Position):
    """Sines and cosines of falling frequency, added (Vaswani et al., 2017)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return x + waves(at, self.width, x.dtype)


class SineHalves(Sine):
    """The same, but all sines stand before all cosines (Marian: Junczys-Dowmunt et al., 2018)."""

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        exact = waves(at, self.width, torch.float64)  # checkpoints were trained with sines worked out so
        return x + torch.cat((exact[..., 0::2], exact[..., 1::2]), -1).to(x.dtype)


class SineBeside(Position):
    """Sines and cosines set beside the inputs in channels of their own, so that place and content do not mix."""

    def __init__(self, room: int) -> None:
        super().__init__()
        if room < 1:
            raise ValueError(f"a room of {room} channels holds no position; give it 1 or more")
        self.room = room

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        beside = waves(at, self.room, x.dtype)
        return torch.cat((x, beside.expand(x.shape[0], -1, -1)), -1)


class Learned(Position):
    """A vector learned for each of `length` positions, added; `offset` more stand before them and are not used."""

    def __init__(self, length: int, width: int, offset: int = 0) -> None:
        super().__init__()
        self.length, self.offset = length, offset
        self.table = nn.Parameter(torch.randn(length + offset, width) * 0.02)

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        reached = self.reached(at)
        if reached > self.length:
            raise Refusal(
                f"a sequence of {reached} is longer than the {self.length} positions that the model learned; "
                "shorten it or train with a larger model.length"
            )
        return x + self.table[at.clamp(min=0) + self.offset]

    def reached(self, at: Tensor) -> int:
        """How many positions are needed. A CPU is asked; a GPU would have to be waited for, and tells by the shape."""
        unasked = at.device.type != "cpu" or torch.compiler.is_compiling() or not at.numel()
        return at.shape[1] if unasked else int(at.max()) + 1


class Network(Position):
    """Positions through a small network, added: smooth in the position, and open at the end."""

    def __init__(self, width: int, hidden: int = 32, scale: float = 64.0) -> None:
        super().__init__()
        self.scale = scale
        self.network = nn.Sequential(nn.Linear(1, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):  # bfloat16 cannot tell a position from the next
            exact = next(self.network.parameters()).dtype
            added = self.network(at.unsqueeze(-1).to(exact) / self.scale)
        return x + added.to(x.dtype)


def waves(at: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Even channels are sines, odd ones cosines, of position / 10000^(channel / width): B|1 T -> B|1 T width."""
    angle = at.unsqueeze(-1) * frequencies(width, torch.promote_types(dtype, torch.float32), at.device)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)[..., :width].to(dtype)


def frequencies(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Falling from 1 towards 1 / 10000 over the channels, one for every two of them."""
    return torch.exp(torch.arange(0, width, 2, device=device, dtype=dtype) * (-math.log(10_000.0) / width))
