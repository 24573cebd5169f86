"""Kernels of our own, in Triton, for what PyTorch's say with more work: imported on a GPU alone."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, float32

FEW, CROWD = (128, 4), (32, 1)  # columns that a program looks at together, and warps that share them
MANY = 128  # programs from which on most of a GPU is busy
TILE = 16384  # bytes of keys that a program reads at once: of them and of values a few lie in 99 KiB of shared memory
SCHEMA = (
    "(Tensor row, Tensor? turns, Tensor(a!) keys, Tensor(b!) values, Tensor rows, Tensor? places, int heads,"
    " float scale) -> Tensor"
)


@triton.jit
def rotate(x, beside, cos, sin):  # type: ignore[no-untyped-def]
    """Channels turned with those that stand half a head away, rounded as `Rotary` does."""
    kept = (x.to(tl.float32) * cos.to(tl.float32)).to(x.dtype)
    return (kept.to(tl.float32) + beside.to(tl.float32) * sin.to(tl.float32)).to(x.dtype)


@triton.jit
def newest(  # type: ignore[no-untyped-def]
    row, turns, keys, values, y, rows, places, scale,
    x_b, s_b, s_g, s_s, p_b,
    GROUPS: tl.constexpr, SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, WIDE: tl.constexpr,
    BLOCK: tl.constexpr, TURNED: tl.constexpr, PADDED: tl.constexpr, EXACT: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """One program a sequence and group: softmax over columns in blocks, the sum rescaled as a greater score is met."""
    if EARLY:
        tl.extra.cuda.gdc_wait()  # for the kernel before, beside whose end this one was begun
        tl.extra.cuda.gdc_launch_dependents()  # and so may the next
    at = tl.program_id(0).to(tl.int64)
    b, g = at // GROUPS, at % GROUPS
    precision: tl.constexpr = "ieee" if EXACT else "tf32"
    column = tl.load(rows)
    r, d = tl.arange(0, ROWS), tl.arange(0, WIDE)
    inside = d < D
    asked = (r < SHARE)[:, None] & inside[None]
    q, k = row + b * x_b + (g * SHARE + r)[:, None] * D, row + b * x_b + (GROUPS * SHARE + g) * D
    queries = tl.load(q + d[None], mask=asked, other=0.0)
    key = tl.load(k + d, mask=inside, other=0.0)
    value = tl.load(k + GROUPS * D + d, mask=inside, other=0.0)
    if TURNED:
        away = (d + D // 2) % D
        place = tl.load(places + b * p_b + column) if PADDED else column
        cos = tl.load(turns + place * 2 * D + d, mask=inside, other=0.0)
        sin = tl.load(turns + place * 2 * D + D + d, mask=inside, other=0.0)
        queries = rotate(queries, tl.load(q + away[None], mask=asked, other=0.0), cos[None], sin[None])
        key = rotate(key, tl.load(k + away, mask=inside, other=0.0), cos, sin)
    first = b * s_b + g * s_g
    tl.store(keys + first + column * s_s + d, key, mask=inside)
    tl.store(values + first + column * s_s + d, value, mask=inside)
    best = tl.sum(queries.to(tl.float32) * key.to(tl.float32)[None], 1) * scale  # itself, whom it sees always
    total = tl.full([ROWS], 1.0, tl.float32)
    taken = tl.zeros([ROWS, WIDE], tl.float32) + value.to(tl.float32)[None]
    for start in range(0, column, BLOCK):
        j = start + tl.arange(0, BLOCK)
        seen = j < column
        written = seen[:, None] & inside[None]
        there = first + j[:, None] * s_s + d[None]
        some = tl.load(keys + there, mask=written, other=0.0)
        if PADDED:
            seen = seen & (tl.load(places + b * p_b + j, mask=seen, other=-1) >= 0)
        scores = tl.dot(queries, tl.trans(some), input_precision=precision) * scale
        scores = tl.where(seen[None], scores, -float("inf"))
        most = tl.maximum(best, tl.max(scores, 1))
        part, fade = tl.exp(scores - most[:, None]), tl.exp(best - most)
        total = total * fade + tl.sum(part, 1)
        some = tl.load(values + there, mask=written, other=0.0)
        taken = taken * fade[:, None] + tl.dot(part.to(some.dtype), some, input_precision=precision)
        best = most
    made = taken / total[:, None]
    tl.store(y + (at * SHARE + r)[:, None] * D + d[None], made.to(y.dtype.element_ty), mask=asked)


@torch.library.custom_op("heedful::newest", mutates_args=("keys", "values"), schema=SCHEMA)
def look(
    row: Tensor, turns: Tensor | None, keys: Tensor, values: Tensor, rows: Tensor, places: Tensor | None, heads: int,
    scale: float,
) -> Tensor:  # fmt: skip
    """What rows take of a memory's columns (B G S D) up to `rows`, at which their keys and values are written.

    A row (B 1 (H + 2 G) D) is its queries, keys and values, of which the first two are turned (S 2 D: cosine and sine
    of every place). What it takes lies head by head: B 1 (H D). An operation of its own, for torch.compile: it cannot
    look into the kernel, and need not.
    """
    row = row.contiguous()
    y, (_, groups, _, width) = room(row, keys, heads), keys.shape
    programs, share = len(row) * groups, heads // groups
    block, warps = FEW if programs < MANY else CROWD
    wide = max(16, triton.next_power_of_2(width))
    block = max(16, min(block, TILE // (wide * row.element_size())))
    newest[(programs,)](
        row, row if turns is None else turns, keys, values, y, rows, rows if places is None else places, scale,
        row.stride(0), keys.stride(0), keys.stride(1), keys.stride(2), 0 if places is None else places.stride(0),
        GROUPS=groups, SHARE=share, ROWS=max(16, triton.next_power_of_2(share)), D=width, WIDE=wide, BLOCK=block,
        TURNED=turns is not None, PADDED=places is not None, EXACT=row.dtype == float32,
        EARLY=early(row.device), launch_pdl=early(row.device), num_warps=warps,
    )  # fmt: skip
    return y


@cache
def early(device: torch.device) -> bool:
    """Whether a kernel can begin beside the end of the one before: from NVIDIA's Hopper on."""
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device) >= (9, 0)


def room(row: Tensor, keys: Tensor, heads: int) -> Tensor:
    """Room for what rows take."""
    return row.new_empty(len(row), 1, heads * keys.shape[-1])


@look.register_fake
def _(row: Tensor, turns: Any, keys: Tensor, values: Any, rows: Any, places: Any, heads: int, scale: float) -> Tensor:
    return room(row, keys, heads)
