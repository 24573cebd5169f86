"""Building blocks of several masks: heads that take turns, strided positions, and checked sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention.mask_and_bias import Mask


class Turns(Mask):
    """Heads take these masks by turns: head h has the one at h modulo their number."""

    def __init__(self, heads: int, *masks: Mask) -> None:
        self.heads, self.masks, self.batch = heads, masks, max(mask.batch for mask in masks)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        seen = self.masks[0].sees(b, h, i, j)
        for turn, mask in enumerate(self.masks[1:], 1):
            seen = torch.where(h % len(self.masks) == turn, mask.sees(b, h, i, j), seen)
        return seen

    def take(self, index: Tensor) -> Mask:
        return Turns(self.heads, *(mask.take(index) for mask in self.masks))

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        near = [at for mask in self.masks if (at := mask.near(rows, length)) is not None]
        return torch.cat(near).unique() if len(near) == len(self.masks) else None

    def turns(self) -> tuple[Mask, ...]:
        return self.masks


def merge_turns(heads: int, one: Mask, two: Mask) -> tuple[Mask, ...]:
    """Two masks for heads to take by turns; where there is one head alone, it sees what either shows."""
    return (one, two) if heads > 1 else (one | two,)


class Every(Mask):
    """The positions that are a multiple of `stride` away: a column, where a sequence is read in rows of `stride`."""

    def __init__(self, stride: int) -> None:
        self.stride = least("a stride", stride)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i - j) % self.stride == 0

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        at = torch.arange(0, length, self.stride, device=rows.device)[:, None] + (rows % self.stride).unique()
        return at[at < length]

    def order(self, length: int) -> Tensor | None:
        at = torch.arange(length)
        return (at % self.stride * length + at).argsort()


def least(what: str, size: int) -> int:
    """A size of something, which must be 1 or more."""
    if size < 1:
        raise ValueError(f"{what} of {size} positions sees nothing; give it a size of 1 or more")
    return size


def some(what: str, count: int) -> int:
    """How many of something there are, 0 or more."""
    if count < 0:
        raise ValueError(f"{what}={count} is less than none; choose 0 or more")
    return count
