"""Masks beside `Causal` and `Everything`: each says in one line which pairs may look. True means may look."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.seeing import Mask


class Window(Mask):
    """The `size` positions up to one's own, and as many after it where nothing else forbids (Child et al., 2019).

    Cost: T. It sees nothing farther than its size, a layer.
    """

    card: ClassVar = Card(
        "Generating Long Sequences with Sparse Transformers (Child et al., 2019)",
        2019,
        "T",
        limits="sees nothing farther than its size, a layer",
        ordered=True,
    )

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a window of {size} sees nothing; give it a size of 1 or more")
        self.size = size

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i - j).abs() < self.size

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        first, last = int(rows.min()) - self.size + 1, int(rows.max()) + self.size
        return torch.arange(max(0, first), min(length, last), device=rows.device)


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


class Blocks(Mask):
    """Blocks of `size` positions, each of which sees itself alone (Qiu et al., 2020). Cost: T.

    From Python a `layout` says which blocks see which: a boolean, blocks x blocks, True where the row's block may look.
    """

    card: ClassVar = Card(
        "Blockwise Self-Attention for Long Document Understanding (Qiu et al., 2020)",
        2020,
        "T",
        limits="sees nothing beyond its block",
        ordered=True,
    )

    def __init__(self, size: int, layout: Tensor | None = None) -> None:
        if size < 1:
            raise ValueError(f"a block of {size} positions sees nothing; give it a size of 1 or more")
        if layout is not None and (layout.dim() != 2 or layout.dtype != torch.bool):
            raise ValueError(f"a layout is a boolean, blocks x blocks, not {layout.dtype} with {layout.dim()} axes")
        self.size, self.layout = size, layout

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        i, j = i // self.size, j // self.size
        return i == j if self.layout is None else self.layout[i.clamp(min=0), j.clamp(min=0)]

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        if self.layout is not None:
            return None
        first, last = int(rows.min()) // self.size, int(rows.max()) // self.size
        return torch.arange(first * self.size, min(length, (last + 1) * self.size), device=rows.device)


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
