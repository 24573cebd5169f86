"""Positions that live in the queries and keys."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from heedful.attention.sight import Sight
from heedful.errors import Refusal


class Rotary:
    """Turns queries and keys by an angle of their position: a score knows only the distance (Su et al., 2021).

    A `stretch` above 1 turns slower, so that longer texts keep to the angles that were learned (Chen et al., 2023).
    """

    def __init__(self, base: float = 10_000.0, stretch: float = 1.0) -> None:
        if not (base > 0 and stretch > 0):
            raise ValueError(f"a base of {base} and a stretch of {stretch} give no angles; choose both above 0")
        self.base, self.stretch = base, stretch
        self.kind: tuple[str | float, ...] = ("rotary", base, stretch)  # which turns are the same

    def __call__(self, x: Tensor, at: Tensor, sight: Sight) -> Tensor:
        """x (B H T D), whose rows stand at `at` (B|1 T), turned."""
        cos, sin = self.kept(at, sight, x)
        return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)

    def kept(self, at: Tensor, sight: Sight, x: Tensor) -> tuple[Tensor, Tensor]:
        """The turns of such an x, which are made once per forward."""
        if x.shape[-1] % 2:
            raise Refusal(f"rotary positions turn pairs of channels and a head has {x.shape[-1]}; make it even")
        key = (*self.kind, x.shape[-1], x.dtype, at is sight.rows)
        return sight.once(key, lambda: self.turns(at, x.shape[-1], x.dtype))

    def turns(self, at: Tensor, width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Cosine and sine of every position's angles, for both halves of the channels: B|1 1 T D each."""
        exact = torch.promote_types(dtype, torch.float32)
        angle = at[:, None, :, None].clamp(min=0) * self.rates(
            torch.arange(0, width, 2, device=at.device).to(exact) / width
        )
        cos, sin = angle.cos(), angle.sin()
        return torch.cat((cos, cos), -1).to(dtype), torch.cat((-sin, sin), -1).to(dtype)

    def rates(self, channel: Tensor) -> Tensor:
        """The angle from one position to the next, of each pair of channels, which are told from 0 up to 1."""
        return self.base**-channel / self.stretch


class RotaryByParts(Rotary):
    """Llama 3's: only waves longer than the texts first learned from are stretched (Grattafiori et al., 2024).

    `length` is that of those texts; waves that fit into it `fast` times or more stay as they are, those that fit
    `slow` times or less are stretched, and those between are mixed.
    """

    def __init__(
        self, base: float = 500_000.0, stretch: float = 8.0, slow: float = 1.0, fast: float = 4.0, length: int = 8192
    ) -> None:
        super().__init__(base, stretch)
        if not 0 < slow < fast or length < 1:
            raise ValueError(f"slow {slow}, fast {fast} and length {length} leave nothing between; choose slow < fast")
        self.slow, self.fast, self.length = slow, fast, length
        self.kind = ("rotary by parts", base, stretch, slow, fast, length)

    def rates(self, channel: Tensor) -> Tensor:
        plain = self.base**-channel
        often = self.length * plain / (2 * math.pi)  # a wave fits into the length
        kept = ((often - self.slow) / (self.fast - self.slow)).clamp(0.0, 1.0)
        return plain * (kept + (1 - kept) / self.stretch)


def standing(present: Tensor) -> Tensor:
    """Where tokens stand, of a boolean (B T) that says which of them are there: 0, 1, ..., and -1 for padding."""
    return torch.where(present, present.cumsum(-1) - 1, -1)
