"""Buckets: batches filled up with padding to round shapes; each shape is a graph of its own, and few should do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

LENGTHS, ROWS = 4, 32  # what is captured is filled up to multiples of these: a capture takes no longer than a few steps
SHORTEST = 16  # what is compiled is filled up to powers of two from this one on: each shape takes a minute to compile

MOST = 64  # shapes that are compiled; torch goes on without compiling after 8, where not told

Batch = dict[str, Tensor]
Shape = Callable[[Batch], Batch]


def captured(batch: Batch, longest: int) -> Batch:
    """The batch with rows and columns of zeros up to multiples, columns never beyond the longest: B T -> B' T'."""
    return filled(
        batch,
        lambda rows: rows + -rows % ROWS,
        lambda length: max(length, min(length + -length % LENGTHS, longest)),
    )


def compiled(batch: Batch, longest: int) -> Batch:
    """The batch with zeros up to powers of two, all its sides as long as the longest of them: B T -> B' T'."""
    side = max(length for tensor in batch.values() for length in tensor.shape[1:])
    side = max(side, min(power(side), longest))
    return filled(batch, power, lambda length: side)


def static(model: nn.Module) -> nn.Module:
    """The model, compiled anew for each shape of batch, always to the same kernels: none is chosen by a stopwatch."""
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MOST)
    return cast(nn.Module, torch.compile(model, dynamic=False, options={"deterministic": True}))


@contextlib.contextmanager
def repeatable() -> Iterator[None]:
    """Inside, what is compiled adds in the same order every time; on a GPU it would else take what comes first."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as torch asks for, for products to be so too
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def filled(batch: Batch, rows: Callable[[int], int], columns: Callable[[int], int]) -> Batch:
    """The batch with as many rows and columns as asked for, the new ones zeros, which must mean nothing: padding."""
    made = {}
    for name, tensor in batch.items():
        more = [(0, columns(length) - length) for length in reversed(tensor.shape[1:])]
        made[name] = pad(tensor, (*(side for pair in more for side in pair), 0, rows(len(tensor)) - len(tensor)))
    return made


def power(size: int) -> int:
    """The power of two that holds so many, `SHORTEST` at least."""
    return max(SHORTEST, 1 << (size - 1).bit_length())
