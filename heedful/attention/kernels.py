"""Kernels of our own, in Triton, for what PyTorch's say with more work: imported on a GPU alone."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, float32

FEW, CROWD = (128, 8), (32, 2)  # columns that a program looks at together, and warps that share them
MANY = 128  # programs from which on most of a GPU is busy
TILE = 16384  # bytes of keys that a program reads at once: of them and of values a few lie in 99 KiB of shared memory
SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, Tensor(a!) keys, Tensor(b!) values, Tensor rows, Tensor? places, float scale)"
    " -> Tensor"
)


@triton.jit
def newest(  # type: ignore[no-untyped-def]
    q, k, v, keys, values, y, rows, places, scale,
    q_b, q_h, k_b, k_g, v_b, v_g, s_b, s_g, s_s, y_b, y_h, p_b,
    GROUPS: tl.constexpr, SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, WIDE: tl.constexpr,
    BLOCK: tl.constexpr, PADDED: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """One program a sequence and group: softmax over columns in blocks, the sum rescaled as a greater score is met."""
    at = tl.program_id(0).to(tl.int64)
    b, g = at // GROUPS, at % GROUPS
    precision: tl.constexpr = "ieee" if EXACT else "tf32"
    column = tl.load(rows)
    r, d = tl.arange(0, ROWS), tl.arange(0, WIDE)
    inside = d < D
    asked = (r < SHARE)[:, None] & inside[None]
    queries = tl.load(q + b * q_b + (g * SHARE + r)[:, None] * q_h + d[None], mask=asked, other=0.0)
    key = tl.load(k + b * k_b + g * k_g + d, mask=inside, other=0.0)
    value = tl.load(v + b * v_b + g * v_g + d, mask=inside, other=0.0)
    first = b * s_b + g * s_g
    tl.store(keys + first + column * s_s + d, key, mask=inside)
    tl.store(values + first + column * s_s + d, value, mask=inside)
    best = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    taken = tl.zeros([ROWS, WIDE], tl.float32)
    for start in range(0, column + 1, BLOCK):
        j = start + tl.arange(0, BLOCK)
        own = (j == column)[:, None]  # which may not be in memory yet: other threads write it
        written = (j < column)[:, None] & inside[None]
        there = first + j[:, None] * s_s + d[None]
        some = tl.where(own, key[None], tl.load(keys + there, mask=written, other=0.0))
        seen = j <= column
        if PADDED:
            seen = seen & (tl.load(places + b * p_b + j, mask=seen, other=-1) >= 0)
        scores = tl.dot(queries, tl.trans(some), input_precision=precision) * scale
        scores = tl.where(seen[None], scores, -float("inf"))
        most = tl.maximum(best, tl.max(scores, 1))
        still = tl.where(most == -float("inf"), 0.0, most)  # where nothing was seen yet
        part, fade = tl.exp(scores - still[:, None]), tl.exp(best - still)
        total = total * fade + tl.sum(part, 1)
        some = tl.where(own, value[None], tl.load(values + there, mask=written, other=0.0))
        taken = taken * fade[:, None] + tl.dot(part.to(some.dtype), some, input_precision=precision)
        best = most
    made = taken / tl.where(total > 0, total, 1.0)[:, None]
    tl.store(y + b * y_b + (g * SHARE + r)[:, None] * y_h + d[None], made.to(y.dtype.element_ty), mask=asked)


@torch.library.custom_op("heedful::newest", mutates_args=("keys", "values"), schema=SCHEMA)
def look(
    q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, rows: Tensor, places: Tensor | None, scale: float
) -> Tensor:
    """What rows (B H 1 D) take of a memory's columns (B G S D) up to `rows`, at which k and v (B G 1 D) are written.

    An operation of its own, for torch.compile: it cannot look into the kernel, and need not.
    """
    y = beside(q)
    groups, width, share = k.shape[1], q.shape[-1], q.shape[1] // k.shape[1]
    programs = q.shape[0] * groups
    block, warps = FEW if programs < MANY else CROWD
    wide = max(16, triton.next_power_of_2(width))
    block = max(16, min(block, TILE // (wide * q.element_size())))
    newest[(programs,)](
        q, k, v, keys, values, y, rows, rows if places is None else places, scale,
        q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        keys.stride(0), keys.stride(1), keys.stride(2), y.stride(0), y.stride(1),
        0 if places is None else places.stride(0),
        GROUPS=groups, SHARE=share, ROWS=max(16, triton.next_power_of_2(share)), D=width,
        WIDE=wide, BLOCK=block, PADDED=places is not None, EXACT=q.dtype == float32,
        num_warps=warps,
    )  # fmt: skip
    return y


def beside(q: Tensor) -> Tensor:
    """Room for as many rows (B H 1 D), the heads side by side, as they are joined."""
    return q.new_empty(q.shape[0], 1, q.shape[1], q.shape[3]).transpose(1, 2)


@look.register_fake
def _(q: Tensor, *given: Any) -> Tensor:
    return beside(q)
