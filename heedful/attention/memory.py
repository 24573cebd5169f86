"""What a decoder keeps between steps, so that a new token costs one row. The decoder owns it; layers are handed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import torch
from torch import Tensor

from heedful.attention.sight import Bias, Mask, Sight

Slot = tuple[Tensor, Tensor]


class Memory:
    """Keys and values of every attention layer, preallocated and doubled when full, and how many are written."""

    def __init__(self, size: int = 64) -> None:
        self.size, self.start, self.written = size, 0, 0
        self.slots: dict[Hashable, Slot] = {}
        self.calls: Counter[Hashable] = Counter()  # of each owner in this forward

    def sight(self, mask: Mask, x: Tensor, bias: Bias | None = None) -> Sight:
        """The sight of the next tokens on themselves and on all before; from here on they count as written."""
        self.start, self.written = self.written, self.written + x.shape[1]
        self.calls.clear()
        columns = torch.arange(self.written, device=x.device)[None]
        return Sight(mask, columns[:, self.start :], columns, x.shape[0], bias, counted=True)

    def keep(self, owner: Hashable, k: Tensor, v: Tensor) -> Slot:
        """Writes the new keys and values (B G T D) behind the owner's earlier ones and returns all of them."""
        owner = self.turn(owner)
        if owner not in self.slots:
            self.slots[owner] = (room(k, max(self.size, self.written)), room(v, max(self.size, self.written)))
        while self.slots[owner][0].shape[2] < self.written:
            self.slots[owner] = tuple(torch.cat((slot, torch.zeros_like(slot)), 2) for slot in self.slots[owner])  # type: ignore[assignment]
        keys, values = self.slots[owner]
        keys[:, :, self.start : self.written] = k
        values[:, :, self.start : self.written] = v
        return keys[:, :, : self.written], values[:, :, : self.written]

    def turn(self, owner: Hashable) -> Hashable:
        """The owner at its next call of this forward: layers that share their weights do not share their keys."""
        self.calls[owner] += 1
        return owner, self.calls[owner]

    def take(self, index: Tensor) -> None:
        """Keeps the sequences at `index` alone, in that order: beams that go on."""
        for owner, (k, v) in self.slots.items():
            self.slots[owner] = k.index_select(0, index), v.index_select(0, index)


class FixedMemory(Memory):
    """A memory whose shapes never change, so that a step can be a CUDA graph; unwritten columns stand at -1."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.length: Tensor | None = None  # how much is written, on the device
        self.rows: Tensor | None = None  # where the newest tokens stand

    def sight(self, mask: Mask, x: Tensor, bias: Bias | None = None) -> Sight:
        written = self.written + x.shape[1]
        if written > self.size:
            raise ValueError(f"the memory holds {self.size} tokens and {written} came; make it larger")
        self.written = written
        self.calls.clear()
        if self.length is None:
            self.length = torch.zeros((), dtype=torch.long, device=x.device)
        self.rows = self.length + torch.arange(x.shape[1], device=x.device)
        self.length += x.shape[1]
        columns = torch.arange(self.size, device=x.device)
        return Sight(mask, self.rows[None], torch.where(columns < self.length, columns, -1)[None], x.shape[0], bias)

    def keep(self, owner: Hashable, k: Tensor, v: Tensor) -> Slot:
        owner = self.turn(owner)
        if owner not in self.slots:
            self.slots[owner] = (room(k, self.size), room(v, self.size))
        assert self.rows is not None, "a memory's sight is made before its layers are called"
        keys, values = self.slots[owner]
        return keys.index_copy_(2, self.rows, k), values.index_copy_(2, self.rows, v)


def room(x: Tensor, size: int) -> Tensor:
    """Empty space for `size` rows like those of x."""
    return x.new_zeros(*x.shape[:2], size, x.shape[-1])
