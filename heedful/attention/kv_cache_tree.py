"""A KV cache for beams: a tree of tokens, each row with a past of its own among all that is written."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention.kv_cache import Memory
from heedful.attention.mask_and_bias import Bias, Causal, Mask
from heedful.attention.sight import Sight


class TreeMemory(Memory):
    """A memory whose newest tokens (B K) stand side by side, each behind one that was written before: a tree.

    So the K beams of a source are rows of one forward. Each step writes K columns, and a row sees its own past among
    all that is written. Beams that change places change a small table, `past`; keys and values stay where they are
    until the memory is full: then it moves, without the columns that no beam goes back to any more.
    """

    def __init__(self, size: int = 64) -> None:
        super().__init__(size)
        self.step = 0  # where the next tokens stand
        self.past: Tensor | None = None  # B K S: which columns lie behind each row

    def sight(self, mask: Mask, x: Tensor, bias: Bias | None = None, positions: Tensor | None = None) -> Sight:
        batch, width = x.shape[:2]
        if self.past is None or self.places is None:
            self.past = torch.zeros(batch, width, 0, dtype=torch.bool, device=x.device)
            self.places = torch.zeros(1, 0, dtype=torch.long, device=x.device)
        if self.written + width > self.size:
            self.prune(width)
        rows = torch.full((1, width), self.step, device=x.device) if positions is None else positions
        self.start, self.written, self.step = self.written, self.written + width, self.step + 1
        self.calls.clear()
        sides = max(len(rows), len(self.places))
        self.places = torch.cat((self.places.expand(sides, -1), rows.expand(sides, -1)), 1)
        itself = torch.eye(width, dtype=torch.bool, device=x.device).expand(batch, -1, -1)
        self.past = torch.cat((self.past, itself), 2)
        return Branching(mask, rows, self.places, batch, bias, self.past[:, None])

    def follow(self, parents: Tensor) -> None:
        """Says behind which of the newest tokens each of the next will stand: B K."""
        if self.past is not None:
            first = torch.arange(len(parents), device=parents.device)[:, None] * self.past.shape[1]
            for owner, past in self.sums.items():
                self.sums[owner] = past.index_select(0, (first + parents).flatten())
            self.past = self.past.gather(1, parents[:, :, None].expand(-1, -1, self.written))

    def lines(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).flatten(0, 1).unsqueeze(2)  # (B K) H 1 D

    def side_by_side(self, x: Tensor) -> Tensor:
        assert self.past is not None, "a memory's sight is made before its layers are called"
        return x.squeeze(2).unflatten(0, (-1, self.past.shape[1])).transpose(1, 2)

    def lines_of(self, index: Tensor) -> Tensor:
        assert self.past is not None, "a memory's sight is made before its layers are called"
        beams = self.past.shape[1]
        return (index[:, None] * beams + torch.arange(beams, device=index.device)).flatten()

    def prune(self, width: int) -> None:
        """Moves to a new place, with room for `width` columns more, without the columns that lie behind no row."""
        assert self.past is not None and self.places is not None
        lives = self.past.any(1)  # B S
        self.written = int(lives.sum(-1).max())
        while 2 * (self.written + width) > self.size:  # so that it need not move again soon
            self.size *= 2
        order = lives.int().argsort(dim=-1, descending=True, stable=True)[:, : self.written]
        self.places = self.places.expand_as(lives).gather(1, order)
        self.past = self.past.gather(2, order[:, None].expand(-1, self.past.shape[1], -1))
        for owner, (k, v) in self.slots.items():
            self.slots[owner] = compact(k, order, self.size), compact(v, order, self.size)

    def take(self, index: Tensor) -> None:
        super().take(index)
        if self.past is not None:
            self.past = self.past[index]


class Branching(Sight):
    """The sight of rows that stand side by side, each with a past of its own among the columns: B 1 T S."""

    def __init__(self, mask: Mask, rows: Tensor, columns: Tensor, batch: int, bias: Bias | None, past: Tensor) -> None:
        super().__init__(mask, rows, columns, batch, bias)
        self.past: Tensor = past

    def _dense(self) -> Tensor:
        return self.past if type(self.mask) is Causal else super()._dense() & self.past  # no past lies ahead

    @property
    def pays_in_blocks(self) -> bool:
        return False

    def plus(self, bias: Bias) -> Sight:
        other = Branching(self.mask, self.rows, self.columns, self.batch, bias, self.past)
        other._made = self._made
        return other

    def behind(self, other: Sight) -> Sight:
        return Branching(other.mask, self.rows, self.columns, self.batch, self.bias, self.past)

    def afresh(self) -> Sight:
        return Branching(self.mask, self.rows, self.columns, self.batch, self.bias, self.past)

    def at(self, rows: Tensor) -> Sight:
        past = self.past[:, :, rows]
        return Branching(self.mask, self.rows[:, rows], self.columns, self.batch, self.bias, past)


def compact(x: Tensor, order: Tensor, size: int) -> Tensor:
    """The columns at `order` (B S) in a new place of `size`, whose other columns hold anything until written."""
    wider = x.new_empty(*x.shape[:2], size, x.shape[-1])
    wider[:, :, : order.shape[1]] = x.gather(2, order[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))
    return wider
