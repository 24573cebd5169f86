"""Buckets: batches filled up with padding to round shapes; each shape is a graph of its own, and few should do."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import pad

LENGTHS, ROWS = 4, 32  # what is captured is filled up to multiples of these: a capture takes no longer than a few steps
SHORTEST = 16  # what is compiled is filled up to powers of two from this one on: each shape takes a minute to compile

Batch = dict[str, Tensor]
Shape = Callable[[Batch], Batch]


def fill_for_graphs(batch: Batch, longest: int) -> Batch:
    """The batch with rows and columns of zeros up to multiples, columns never beyond the longest: B T -> B' T'."""
    return fill_up(
        batch,
        lambda rows: rows + -rows % ROWS,
        lambda length: max(length, min(length + -length % LENGTHS, longest)),
    )


def fill_for_compiler(batch: Batch, longest: int) -> Batch:
    """The batch with zeros up to powers of two, all its sides as long as the longest of them: B T -> B' T'."""
    side = max(length for tensor in batch.values() for length in tensor.shape[1:])
    side = max(side, min(power(side), longest))
    return fill_up(batch, power, lambda length: side)


def fill_up(batch: Batch, rows: Callable[[int], int], columns: Callable[[int], int]) -> Batch:
    """The batch with as many rows and columns as asked for, the new ones zeros, which must mean nothing: padding."""
    made = {}
    for name, tensor in batch.items():
        more = [(0, columns(length) - length) for length in reversed(tensor.shape[1:])]
        made[name] = pad(tensor, (*(side for pair in more for side in pair), 0, rows(len(tensor)) - len(tensor)))
    return made


def power(size: int) -> int:
    """The power of two that holds so many, `SHORTEST` at least."""
    return max(SHORTEST, 1 << (size - 1).bit_length())
