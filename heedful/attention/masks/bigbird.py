"""BigBird (Zaheer et al., 2020): neighbours, blocks that all see, and links by chance."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Mask
from heedful.attention.masks.parts import least, some

PRIME = 46337  # by which chance is made: the square of what is less fits into 32 bits


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
            seen = seen | (two == random_block(one, number)) | (one == random_block(two, number))
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


def random_block(block: Tensor, number: int) -> Tensor:
    """A block before this one, by chance: the same whenever it is asked for.

    No product leaves 32 bits, in which the kernels of a GPU count positions.
    """
    mixed = (block % PRIME * 40503 + number * 30011 + 20011) % PRIME
    mixed = mixed * mixed % PRIME
    return mixed * 7919 % PRIME % block.clamp(min=1)
