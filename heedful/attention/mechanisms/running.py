"""Recurrent state of linear attention: one running sum instead of all keys, so that a new token costs one step."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from heedful.attention.kv_cache import Memory
from heedful.attention.mechanism import Mechanism
from heedful.attention.mechanisms.mask_support import present, reading_of
from heedful.attention.sight import Sight

Given = tuple[Tensor, ...]  # what queries (B H T F) ask, then what is written: B H S F, B H S E, ...

PIECE = 2048  # rows that a CPU takes at once


class Running(Mechanism):
    """What is written goes into a sum (B H F E), of which queries read: all of it, or what was written before them.

    A kind says what is asked and written of q, k and v, how a sequence is run through in chunks, and what it makes of
    what was read. Keys that are not there write nothing.
    """

    sums: ClassVar[bool] = True

    def given(self, q: Tensor, k: Tensor, v: Tensor, there: Tensor) -> Given:
        """The queries and the updates of all heads, in float32 or better."""
        raise NotImplementedError

    def run(self, given: Given, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The answer to each query, from the past and the updates up to itself, and the sum after all updates."""
        raise NotImplementedError

    def written(self, given: Given) -> Tensor:
        """The sum after all of it, where nothing needs to be read on the way."""
        return self.run(given)[1]

    def reads(self, asked: Tensor, sum: Tensor) -> Tensor:
        """What queries (B H T F) read of a sum."""
        return asked @ sum

    def finished(self, y: Tensor) -> Tensor:
        """The output, computed from the answers to the queries."""
        return y

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        with torch.autocast(q.device.type, enabled=False):  # long sums are made in float32
            return self.looked(q, k, v, sight)

    def looked(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        """What `forward` gives."""
        reading = reading_of(sight, self.word)
        itself = sight.counted and sight.rows is sight.columns
        if itself and q.shape[2] > PIECE and not q.is_cuda and not torch.compiler.is_compiling():
            return self.in_pieces(q, k, v, reading.there, reading.causal)
        given = self.given(q, k, v, reading.there)
        if not itself:
            last = torch.iinfo(torch.long).max // 4
            rows = sight.rows if reading.causal else torch.full_like(sight.rows, last)
            y = self.run_in_order(given, rows, sight.columns)
        else:
            y = self.run(given)[0] if reading.causal else self.reads(given[0], self.written(given))
        return self.finished(y).to(q.dtype)

    def in_pieces(self, q: Tensor, k: Tensor, v: Tensor, there: Tensor, causal: bool) -> Tensor:
        """The same, piece by piece: a CPU takes new memory for what is large at every call, page by page."""
        there = there.expand(-1, -1, k.shape[2], -1)
        past: Tensor | None = None
        read: list[Tensor] = []
        for some in zip(*(x.split(PIECE, 2) for x in (q, k, v, there)), strict=True):
            piece = self.given(*some)
            y, past = self.run(piece, past) if causal else (piece[0], self.added(piece, past))
            read.append(self.finished(y).to(q.dtype) if causal else y)
        if not causal and past is not None:
            read = [self.finished(self.reads(asked, past)).to(q.dtype) for asked in read]
        return torch.cat(read, 2)

    def added(self, given: Given, past: Tensor | None) -> Tensor:
        """The sum after all of it and of what was written before."""
        return self.written(given) if past is None else past + self.written(given)

    def run_in_order(self, given: Given, rows: Tensor, columns: Tensor) -> Tensor:
        """Rows and columns in one sequence by position, each row behind all columns that stand where it does."""
        (q, *keys), (batch, _, count, _) = given, given[0].shape
        places = torch.cat([(2 * at + side).expand(batch, -1) for side, at in enumerate((columns, rows))], 1)
        order = places.argsort(dim=1, stable=True)
        asked = pad(q, (0, 0, columns.shape[1], 0))
        together = [take_rows(x, order) for x in (asked, *(pad(x, (0, 0, 0, count)) for x in keys))]
        return take_rows(self.run(tuple(together))[0], order.argsort(dim=1))[:, :, columns.shape[1] :]

    def recall(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight, memory: Memory) -> Tensor:
        with torch.autocast(q.device.type, enabled=False):
            return self.recalled(q, k, v, sight, memory)

    def recalled(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight, memory: Memory) -> Tensor:
        """What `recall` gives."""
        reading = reading_of(sight, self.word)
        new = self.given(q, k, v, present(sight, sight.rows))  # a memory's rows are what is new
        lines = tuple(memory.lines(x) for x in new)
        past = memory.sum(self, (*lines[0].shape[:2], lines[0].shape[-1], lines[2].shape[-1]), lines[0])
        y, after = self.run(lines, past)
        y = y if reading.causal else self.reads(lines[0], after)
        past.copy_(after)
        return self.finished(memory.side_by_side(y)).to(q.dtype)


def take_rows(x: Tensor, order: Tensor) -> Tensor:
    """Rows of x (B H T D) in another order (B T)."""
    return x.gather(2, order[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))


def exact(x: Tensor) -> Tensor:
    """In float32, or in what it is where that is better: long sums are made of it."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def chunks(x: Tensor, size: int) -> Tensor:
    """Rows in chunks of up to `size`, the last one filled up with zeros: B H T D -> B H N C D."""
    size = max(1, min(size, x.shape[2]))
    count = max(1, -(-x.shape[2] // size))
    return pad(x, (0, 0, 0, count * size - x.shape[2])).unflatten(2, (count, size))


def taken_by_head(x: Tensor, order: Tensor) -> Tensor:
    """Rows of x (B H T D), each head in an order of its own (B H T)."""
    return x.gather(2, order.unsqueeze(-1).expand(-1, -1, -1, x.shape[3]))


def earlier(at: Tensor) -> Tensor:
    """Which columns were written before which: B|1 1 S S; of those at one place, in the order in which they come."""
    first = torch.ones(2 * at.shape[-1:], dtype=torch.bool, device=at.device).tril(-1)
    return ((at[:, :, None] > at[:, None]) | ((at[:, :, None] == at[:, None]) & first))[:, None]
