"""Feed-forward: the same small network on every position."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from heedful.blocks.block import Dropout


class FeedForward(nn.Module):
    """Wider, bent, and back (Vaswani et al., 2017)."""

    def __init__(
        self,
        width: int,
        hidden: int,
        activation: Callable[[], nn.Module] = nn.ReLU,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden, bias=bias), nn.Linear(hidden, width, bias=bias)
        self.activation, self.drop = activation(), Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B T M
        return self.down(self.drop(self.activation(self.up(x))))


class GatedFeedForward(nn.Module):
    """One half of the hidden units opens and shuts the other (Shazeer, 2020)."""

    def __init__(
        self,
        width: int,
        hidden: int,
        activation: Callable[[], nn.Module] = nn.SiLU,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * hidden, bias=bias), nn.Linear(hidden, width, bias=bias)
        self.activation, self.drop = activation(), Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B T M
        gate, x = self.up(x).chunk(2, -1)
        return self.down(self.drop(self.activation(gate) * x))
