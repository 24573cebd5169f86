"""Masks of sparse attention, a class a paper: which few of the pairs look at one another. True means may look."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.blocks import SIDE
from heedful.attention.card import Card
from heedful.attention.masks import Window, least, some
from heedful.attention.seeing import Mask

FEW = 2048  # columns: it takes less time to look at so many in vain than to put keys and values in order
PRIME = 46337  # by which chance is made: the square of what is less fits into 32 bits


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


def merged(heads: int, one: Mask, two: Mask) -> tuple[Mask, ...]:
    """Two masks for heads to take by turns; where there is one head alone, it sees what either shows."""
    return (one, two) if heads > 1 else (one | two,)


class MultiScale(Turns):
    """Heads look within windows of unlike size: `size` for the first, and twice as much for each next one.

    Guo et al. (2020), who choose the sizes of each layer by hand. Cost: T times the largest window.
    """

    card: ClassVar = Card(
        "Multi-Scale Self-Attention for Text Classification (Guo et al., 2020)",
        2020,
        "T",
        limits="sees nothing farther than the window of its last head, a layer",
        ordered=True,
        tier="B",
    )

    def __init__(self, heads: int, size: int = 2) -> None:
        super().__init__(heads, *(Window(least("multiscale", size) * 2**head) for head in range(heads)))


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


class Strided(Turns):
    """Half of the heads see the last `size` positions, half every `size`-th (Child et al., 2019).

    One head alone sees both, as the paper's merged head does, by a mask of T^2. Cost: T^1.5 where size is about the
    root of T. Two layers of it reach every position.
    """

    card: ClassVar = Card(
        "Generating Long Sequences with Sparse Transformers (Child et al., 2019)",
        2019,
        "T^1.5",
        limits="made for data with a period, such as images and music",
        ordered=True,
    )

    def __init__(self, heads: int, size: int) -> None:
        super().__init__(heads, *merged(heads, Window(least("strided", size)), Every(size)))


class Fixed(Mask):
    """The own block of `size` positions, and the last `summary` of every block (Child et al., 2019).

    Cost: T^1.5 where size is about the root of T. What is no summary of its block is seen within the block alone.
    """

    card: ClassVar = Card(
        "Generating Long Sequences with Sparse Transformers (Child et al., 2019)",
        2019,
        "T^1.5",
        limits="beyond its block a position is seen through the summaries alone",
        ordered=True,
    )

    def __init__(self, size: int, summary: int = 1) -> None:
        self.size, self.summary = least("fixed", size), least("a summary", summary)
        if summary > size:
            raise ValueError(f"a summary of {summary} is more than a block of {size}; make it less")

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i // self.size == j // self.size) | (j % self.size >= self.size - self.summary)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        own = (rows // self.size).unique()[:, None] * self.size + torch.arange(self.size, device=rows.device)
        starts = torch.arange(0, length, self.size, device=rows.device)[:, None]
        summaries = starts + torch.arange(self.size - self.summary, self.size, device=rows.device)
        at = torch.cat((own.flatten(), summaries.flatten())).unique()
        return at[at < length]

    def gathered(self, length: int) -> Tensor | None:
        spans = length // self.size
        if min(length, spans * (self.summary + SIDE)) - spans * self.summary < FEW:
            return None
        at = torch.arange(length)
        summary = at % self.size >= self.size - self.summary
        return torch.cat((at[summary], at[~summary]))


class Longformer(Mask):
    """The `size` nearest on both sides, and the first `everywhere` positions, which see all and are seen by all.

    Beltagy et al. (2020); their projections of its own for global rows are not part of a mask. Cost: T.
    """

    card: ClassVar = Card(
        "Longformer: The Long-Document Transformer (Beltagy et al., 2020)",
        2020,
        "T",
        limits="global positions are the first ones and share the projections of all others",
        ordered=True,
    )

    def __init__(self, size: int, everywhere: int = 1) -> None:
        self.window, self.everywhere = Window(least("longformer", size)), some("everywhere", everywhere)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.window.sees(b, h, i, j) | (i < self.everywhere) | (j < self.everywhere)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        near, first = self.window.near(rows, length), torch.arange(min(self.everywhere, length), device=rows.device)
        return None if near is None or int(rows.min()) < self.everywhere else torch.cat((first, near)).unique()


class BigBird(Mask):
    """Blocks of `size`: neighbours, `everywhere` first blocks that see all and are seen by all, and some by chance.

    Zaheer et al. (2020). Each block is linked with `links` of those before it, drawn from its number alone, so that a
    sequence may grow; a link goes both ways. Cost: T.
    """

    card: ClassVar = Card(
        "Big Bird: Transformers for Longer Sequences (Zaheer et al., 2020)",
        2020,
        "T",
        limits="global blocks are the first ones; the chance is the same in all layers and heads",
        ordered=True,
    )

    def __init__(self, size: int, everywhere: int = 1, links: int = 2) -> None:
        self.size = least("bigbird", size)
        self.everywhere, self.links = some("everywhere", everywhere), some("links", links)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        one, two = i.clamp(min=0) // self.size, j.clamp(min=0) // self.size
        seen = ((one - two).abs() <= 1) | (one < self.everywhere) | (two < self.everywhere)
        for number in range(self.links):
            seen = seen | (two == drawn(one, number)) | (one == drawn(two, number))
        return seen

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        blocks = torch.arange(-(-length // self.size), device=rows.device)
        own = (rows // self.size).unique()
        if int(own.min()) < self.everywhere:
            return None
        zero = own.new_zeros(())
        seen = self.sees(zero, zero, own[:, None] * self.size, blocks * self.size).any(0)
        at = (blocks[seen][:, None] * self.size + torch.arange(self.size, device=rows.device)).flatten()
        return at[at < length]


def drawn(block: Tensor, number: int) -> Tensor:
    """A block before this one, by chance: the same whenever it is asked for.

    No product leaves 32 bits, in which the kernels of a GPU count positions.
    """
    mixed = (block % PRIME * 40503 + number * 30011 + 20011) % PRIME
    mixed = mixed * mixed % PRIME
    return mixed * 7919 % PRIME % block.clamp(min=1)


class Axial(Turns):
    """Positions on a grid with rows of `size`: half of the heads look along the row, half along the column.

    Ho et al. (2019), whose layers take turns where heads do here. One head alone looks along both, by a mask of
    T^2. Cost: T^1.5 on a square. Two layers of it reach every position.
    """

    card: ClassVar = Card(
        "Axial Attention in Multidimensional Transformers (Ho et al., 2019)",
        2019,
        "T^1.5",
        limits="for sequences that are grids with rows of one size",
        ordered=True,
    )

    def __init__(self, heads: int, size: int) -> None:
        super().__init__(heads, *merged(heads, Local(least("axial", size), memory=0), Every(size)))


class Local(Mask):
    """The own block of `size` positions and `memory` before it, in one dimension (Parmar et al., 2018). Cost: T."""

    card: ClassVar = Card(
        "Image Transformer (Parmar et al., 2018)",
        2018,
        "T",
        limits="sees nothing farther than a block and its memory",
        ordered=True,
    )

    def __init__(self, size: int, memory: int | None = None) -> None:
        self.size, self.memory = least("local", size), size if memory is None else some("memory", memory)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        start = i - i % self.size
        return (j >= start - self.memory) & (j < start + self.size)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        first, last = int(rows.min()) // self.size, int(rows.max()) // self.size
        return torch.arange(
            max(0, first * self.size - self.memory), min(length, (last + 1) * self.size), device=rows.device
        )


class Local2D(Mask):
    """On a grid with rows of `row`, the own square of `size` x `size` and `memory` around it (Parmar et al., 2018).

    The memory lies above and on both sides, as the paper's does. Cost: T.
    """

    card: ClassVar = Card(
        "Image Transformer (Parmar et al., 2018)",
        2018,
        "T",
        limits="for sequences that are grids with rows of one size; sees nothing farther than a square and its memory",
        ordered=True,
    )

    def __init__(self, size: int, row: int = 32, memory: int = 1) -> None:
        self.size, self.row, self.memory = least("local2d", size), least("a row", row), some("memory", memory)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        down, right = (i // self.row) // self.size * self.size, (i % self.row) // self.size * self.size
        y, x = j // self.row - down, j % self.row - right
        return (y >= -self.memory) & (y < self.size) & (x >= -self.memory) & (x < self.size + self.memory)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        down, right = (at // self.size * self.size for at in (rows // self.row, rows % self.row))
        corner = (down * self.row + right).unique()[:, None, None]  # of each square that the rows stand in
        y = corner // self.row + torch.arange(-self.memory, self.size, device=rows.device)[:, None]
        x = corner % self.row + torch.arange(-self.memory, self.size + self.memory, device=rows.device)
        at = (y * self.row + x)[(y >= 0) & (x >= 0) & (x < self.row)].unique()
        return at[at < length]

    def order(self, length: int) -> Tensor | None:
        at = torch.arange(length)
        down, right = at // self.row // self.size, at % self.row // self.size
        return ((down * self.row + right) * length + at).argsort()
