"""The KV cache: keys and values that a decoder keeps between steps, so that a new token costs one row."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from heedful.attention.mask_and_bias import Bias, Causal, Mask
from heedful.attention.sight import Sight

Slot = tuple[Tensor, Tensor]


class Memory:
    """Keys and values of every attention layer, preallocated and doubled when full, and how many are written.

    Where prompts of unequal length stand in it side by side, it keeps where each column stands; the next tokens of a
    sequence stand behind its last, unless told.
    """

    def __init__(self, size: int = 64) -> None:
        self.size, self.start, self.written = size, 0, 0
        self.slots: dict[Hashable, Slot] = {}
        self.sums: dict[Hashable, Tensor] = {}  # of owners that keep no keys: a line's whole past as one tensor
        self.calls: dict[Hashable, int] = {}  # of each owner in this forward
        self.places: Tensor | None = None  # B|1 S: where each column stands; none: it is the column's number

    def sight(self, mask: Mask, x: Tensor, bias: Bias | None = None, positions: Tensor | None = None) -> Sight:
        """The sight of the next tokens on themselves and on all before; from here on they count as written."""
        self.start, self.written = self.written, self.written + x.shape[1]
        self.calls.clear()
        columns = torch.arange(self.written, device=x.device)[None]
        if positions is None and self.places is None:
            rows = columns[:, self.start :] if self.start else columns
            return Sight(mask, rows, columns, x.shape[0], bias, counted=True)
        before = columns[:, : self.start].expand(len(x), -1) if self.places is None else self.places
        rows = next_places(before, x.shape[1]) if positions is None else positions
        self.places = torch.cat((before, rows), 1)
        return Sight(mask, rows, self.places, x.shape[0], bias)

    def place(self, owner: Hashable, k: Tensor, v: Tensor) -> Slot:
        """Where the owner's keys and values are, for who writes the new ones (B G T D) there himself."""
        owner = self.turn(owner)
        if owner not in self.slots:
            self.slots[owner] = (room(k, max(self.size, self.written)), room(v, max(self.size, self.written)))
        keys, values = self.slots[owner]
        if keys.shape[2] < self.written:
            self.slots[owner] = keys, values = double_room(keys, self.written), double_room(values, self.written)
        return keys, values

    def keep(self, owner: Hashable, k: Tensor, v: Tensor) -> Slot:
        """Writes the new keys and values (B G T D) behind the owner's earlier ones and returns all of them."""
        keys, values = self.place(owner, k, v)
        keys[:, :, self.start : self.written] = k
        values[:, :, self.start : self.written] = v
        return keys[:, :, : self.written], values[:, :, : self.written]

    def sum(self, owner: Hashable, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """The state that its owner made of all earlier tokens; the owner overwrites it after the new ones."""
        owner = self.turn(owner)
        if owner not in self.sums:
            self.sums[owner] = like.new_zeros(shape)
        return self.sums[owner]

    def lines(self, x: Tensor) -> Tensor:
        """New tokens (B H T D) line by line, each line in the order of time."""
        return x

    def side_by_side(self, x: Tensor) -> Tensor:
        """The way back from `lines`."""
        return x

    def turn(self, owner: Hashable) -> Hashable:
        """The owner at its next call of this forward: layers that share their weights do not share their keys."""
        self.calls[owner] = turn = self.calls.get(owner, 0) + 1
        return owner, turn

    def take(self, index: Tensor) -> None:
        """Keeps the sequences at `index` alone, in that order: beams that go on."""
        for owner, (k, v) in self.slots.items():
            self.slots[owner] = k.index_select(0, index), v.index_select(0, index)
        if self.places is not None and len(self.places) > 1:
            self.places = self.places.index_select(0, index)
        for owner, past in self.sums.items():
            self.sums[owner] = past.index_select(0, self.lines_of(index))

    def lines_of(self, index: Tensor) -> Tensor:
        """The lines of the sequences at `index`."""
        return index


class FixedMemory(Memory):
    """A memory whose shapes never change, so that a step can be a CUDA graph; unwritten columns stand at -1."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.length: Tensor | None = None  # how much is written, on the device
        self.rows: Tensor | None = None  # the columns of the newest tokens
        self.turns: dict[Hashable, Tensor] = {}  # of rotary positions, for who turns the newest tokens himself
        self.reach = size  # how many columns are looked at; who knows that no more are written may say so
        self.asked = False  # for columns, by a layer whose newest row a kernel does not serve

    def sight(self, mask: Mask, x: Tensor, bias: Bias | None = None, positions: Tensor | None = None) -> Sight:
        written = self.written + x.shape[1]
        if written > self.size:
            raise ValueError(f"the memory holds {self.size} tokens and {written} came; make it larger")
        self.written = written
        self.calls.clear()
        if self.length is None:
            self.length = torch.zeros((), dtype=torch.long, device=x.device)
        self.rows = self.length + torch.arange(x.shape[1], device=x.device)
        self.length += x.shape[1]
        columns = torch.arange(self.reach, device=x.device)[None]
        if x.shape[1] == written == self.reach and positions is None:
            return Sight(mask, columns, columns, x.shape[0], bias, counted=True)
        columns = torch.where(columns < self.length, columns, -1)
        rows = self.rows[None]
        if positions is not None or self.places is not None:
            if self.places is None:
                self.places = torch.full((len(x), self.size), -1, device=x.device)
                self.places[:, : self.reach] = columns.index_fill(1, self.rows, -1)
            rows = next_places(self.places, x.shape[1]) if positions is None else positions
            self.places.index_copy_(1, self.rows, rows)
            columns = self.places[:, : self.reach].clone()
        sight = Sight(mask, rows, columns, x.shape[0], bias)
        sight.seeing = type(mask) is Causal and positions is None  # itself, where it is no padding
        return sight

    def rewind(self, written: int) -> None:
        """Forgets what was written behind the first columns; all keeps its place in memory."""
        self.written = written
        if self.length is not None:
            self.length.fill_(written)
        if self.places is not None:
            self.places[:, written:] = -1

    def place(self, owner: Hashable, k: Tensor, v: Tensor) -> Slot:
        owner = self.turn(owner)
        if owner not in self.slots:
            self.slots[owner] = (room(k, self.size), room(v, self.size))
        assert self.rows is not None, "a memory's sight is made before its layers are called"
        return self.slots[owner]

    def keep(self, owner: Hashable, k: Tensor, v: Tensor) -> Slot:
        keys, values = self.place(owner, k, v)
        assert self.rows is not None
        self.asked = self.asked or k.shape[2] == 1
        keys.index_copy_(2, self.rows, k)
        values.index_copy_(2, self.rows, v)
        return keys[:, :, : self.reach], values[:, :, : self.reach]


def next_places(places: Tensor, count: int) -> Tensor:
    """Where the next `count` tokens of each sequence stand: behind the last of its columns, B S -> B count."""
    last = places.amax(1, keepdim=True) if places.shape[1] else places.new_full((len(places), 1), -1)
    return last + torch.arange(1, count + 1, device=places.device)


def double_room(x: Tensor, least: int) -> Tensor:
    """The same with twice the room, and again until there is enough; what is not yet written holds anything."""
    size = x.shape[2]
    while size < least:
        size *= 2
    wider = x.new_empty(*x.shape[:2], size, x.shape[-1])
    wider[:, :, : x.shape[2]] = x
    return wider


def room(x: Tensor, size: int) -> Tensor:
    """Empty space for `size` rows like those of x."""
    return x.new_zeros(*x.shape[:2], size, x.shape[-1])
