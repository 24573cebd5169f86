"""Masks beside `Causal` and `Everything` that data asks for, in one line each. True means may look."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention.mask_and_bias import Mask


class Padding(Mask):
    """The first `lengths` (B) columns of each sequence; the rest is padding."""

    def __init__(self, lengths: Tensor) -> None:
        self.lengths, self.batch = lengths, lengths.shape[0]

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return j < self.lengths[self.place(b)]

    def take(self, index: Tensor) -> Mask:
        return self if self.batch == 1 else Padding(self.lengths[index])


class Prefix(Mask):
    """The first `size` columns, one number for all sequences or one for each (B): `Causal() | Prefix(n)`."""

    def __init__(self, size: int | Tensor) -> None:
        self.size, self.batch = size, size.shape[0] if isinstance(size, Tensor) else 1

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return j < (self.size[self.place(b)] if isinstance(self.size, Tensor) else self.size)

    def take(self, index: Tensor) -> Mask:
        return Prefix(self.size[index]) if isinstance(self.size, Tensor) and self.batch > 1 else self


class Documents(Mask):
    """Positions of the same document, by its id at every position (B|1 T): texts packed into one row do not mix."""

    def __init__(self, ids: Tensor) -> None:
        self.ids, self.batch = ids, ids.shape[0]

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        b = self.place(b)
        return self.ids[b, i.clamp(min=0)] == self.ids[b, j.clamp(min=0)]

    def take(self, index: Tensor) -> Mask:
        return self if self.batch == 1 else Documents(self.ids[index])


class Given(Mask):
    """A boolean of one's own: B|1 H|1 T S, or T S for all sequences and heads."""

    def __init__(self, seen: Tensor) -> None:
        if seen.dtype != torch.bool or seen.dim() not in (2, 4):
            raise ValueError(f"a given mask is a boolean T S or B H T S, not {seen.dtype} with {seen.dim()} axes")
        self.seen = seen if seen.dim() == 4 else seen[None, None]
        self.batch, self.heads = self.seen.shape[:2]

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        h = h * 0 if self.heads == 1 else h
        return self.seen[self.place(b), h, i.clamp(min=0), j.clamp(min=0)]

    def take(self, index: Tensor) -> Mask:
        return self if self.batch == 1 else Given(self.seen[index])
