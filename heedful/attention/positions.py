"""Positions that live in the queries and keys."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention.sight import Sight


class Rotary:
    """Turns queries and keys by an angle of their position: a score knows only the distance (Su et al., 2021)."""

    def __init__(self, base: float = 10_000.0) -> None:
        self.base = base

    def __call__(self, x: Tensor, at: Tensor, sight: Sight) -> Tensor:
        """x (B H T D), whose rows stand at `at` (B|1 T), turned; the angles are made once per forward."""
        if x.shape[-1] % 2:
            raise ValueError(f"rotary positions turn pairs of channels and a head has {x.shape[-1]}; make it even")
        key = ("rotary", self.base, x.shape[-1], x.dtype, at is sight.rows)
        cos, sin = sight.once(key, lambda: self.turns(at, x.shape[-1], x.dtype))
        one, two = x.chunk(2, -1)
        return torch.cat((one * cos - two * sin, one * sin + two * cos), -1)

    def turns(self, at: Tensor, width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Cosine and sine of every position's angles: B|1 1 T D/2 each."""
        exact = torch.promote_types(dtype, torch.float32)
        rate = self.base ** (-torch.arange(0, width, 2, device=at.device, dtype=exact) / width)
        angle = at[:, None, :, None].clamp(min=0) * rate
        return angle.cos().to(dtype), angle.sin().to(dtype)
