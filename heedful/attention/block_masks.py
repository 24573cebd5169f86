"""Flex attention's block masks, made of what a mask says is near, so that no T x S tensor is needed on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.attention.mask_signature import numbers

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

    from heedful.attention.mask_and_bias import Bias
    from heedful.attention.sight import Sight

SIDE = 128  # rows and columns of a block
AT_ONCE = 2048  # blocks that are looked at together


def block_mask(sight: Sight) -> BlockMask:
    """The mask over indices instead of positions, block by block: all of it is seen, some of it, or nothing."""
    from torch.nn.attention.flex_attention import BlockMask

    place, mask, counted = places(sight), sight.mask, sight.counted  # and not the sight, which holds much else

    def sees(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        at, to = place(b, i, j)
        return mask.sees(b, h, at, to) if counted else mask.sees(b, h, at, to) & (at >= 0) & (to >= 0)

    batch = max(mask.batch, sight.rows.shape[0], sight.columns.shape[0])
    rows, columns = sight.rows.shape[-1], sight.columns.shape[-1]
    b = torch.arange(batch, device=sight.rows.device)[:, None, None, None, None]
    h = torch.arange(mask.heads, device=sight.rows.device)[:, None, None, None]
    some, full = [], []
    pairs = pairs_to_ask(sight)
    at_once = max(1, AT_ONCE // (batch * mask.heads))
    for i, j in zip(*(side.split(at_once) for side in pairs), strict=True):  # P 1 1
        within = torch.arange(SIDE, device=i.device)
        i, j = i * SIDE + within[:, None], j * SIDE + within
        seen = sees(b, h, i.clamp(max=rows - 1), j.clamp(max=columns - 1)) & (i < rows) & (j < columns)
        seen = seen.expand(batch, mask.heads, -1, SIDE, SIDE).flatten(3)
        some.append(seen.any(-1))
        full.append(seen.all(-1))
    whole = torch.cat(full, -1)
    lists = [
        as_flex_lists(found, pairs, -(-rows // SIDE), -(-columns // SIDE))
        for found in (torch.cat(some, -1) & ~whole, whole)
    ]
    return BlockMask.from_kv_blocks(*lists[0], *lists[1], SIDE, sees, (rows, columns))


def score_mod(sight: Sight, bias: Bias) -> Callable[..., Tensor]:
    """Flex attention's score_mod of a bias."""
    place, adds = places(sight), bias.adds
    return lambda score, b, h, i, j: score + adds(b, h, *place(b, i, j)).to(score.dtype)


def pairs_to_ask(sight: Sight) -> tuple[Tensor, Tensor]:
    """The pairs of blocks of which some may be seen, each P 1 1."""
    if not (sight.counted and sight.rows is sight.columns):
        return all_pairs(sight)
    return candidates(sight) if sight.signature is not None else near_by_numbers(sight)


def places(sight: Sight) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Where a row and a column stand that are told by index, in the sight's order; in 32 bits, as kernels count."""
    before = sight.columns.shape[-1] - sight.rows.shape[-1]
    gathered = sight.gathered or sight.order
    if sight.counted and gathered is None:
        return lambda b, i, j: (i + before, j)
    if sight.counted and gathered is not None:
        at, to = sight.in_order.int(), gathered.at.int()
        return lambda b, i, j: (at[i], to[j])
    rows, columns = sight.rows.expand(sight.batch, -1), sight.columns.expand(sight.batch, -1)
    if sight.order is not None:
        rows, columns = rows[:, sight.order.at], columns[:, sight.order.at]
    rows, columns = rows.contiguous(), columns.contiguous()
    return lambda b, i, j: (rows[b, i], columns[b, j])


def near_by_numbers(sight: Sight) -> tuple[Tensor, Tensor]:
    """The pairs that may see one another by what the mask says in numbers alone: what it says by tensors is not asked.

    So they are found once for all forwards, and nothing is copied to a GPU while a graph is captured.
    """
    from heedful.attention.sight import Sight

    told = Sight(numbers(sight.mask), sight.rows, sight.columns, sight.batch, None, sight.order, sight.counted)
    told.laid, told.gathered = sight.laid, sight.gathered
    return told.lasting("candidates", lambda: candidates(told))


def candidates(sight: Sight) -> tuple[Tensor, Tensor]:
    """The pairs of blocks that may see one another, each P 1 1; a mask is asked on the CPU, which waits for none."""
    length, gathered, pairs = sight.rows.shape[-1], sight.gathered or sight.order, []
    place = torch.arange(length) if gathered is None else gathered.back.cpu()
    for number, rows in enumerate(sight.in_order.cpu().split(SIDE)):
        near = sight.mask.near(rows, length)
        blocks = (torch.arange(0, length, SIDE) if near is None else place[near]).div(SIDE, rounding_mode="floor")
        blocks = blocks.unique()
        pairs.append(torch.stack((torch.full_like(blocks, number), blocks)))
    one, two = torch.cat(pairs, 1).to(sight.rows.device)[..., None, None]
    return one, two


def all_pairs(sight: Sight) -> tuple[Tensor, Tensor]:
    """Every pair of blocks, each P 1 1: where rows and columns stand is told by tensors, of which nothing is asked."""
    rows, columns = (torch.arange(-(-at.shape[-1] // SIDE), device=at.device) for at in (sight.rows, sight.columns))
    one, two = (at.flatten()[:, None, None] for at in torch.meshgrid(rows, columns, indexing="ij"))
    return one, two


def as_flex_lists(found: Tensor, pairs: tuple[Tensor, Tensor], *counts: int) -> tuple[Tensor, Tensor]:
    """Found pairs (B H P) as flex attention lists them: how many for each row of blocks, and which, the rest behind."""
    there = torch.zeros(*found.shape[:2], *counts, dtype=torch.int32, device=found.device)
    there[:, :, pairs[0].flatten(), pairs[1].flatten()] = found.int()
    return there.sum(-1, dtype=torch.int32), there.argsort(dim=-1, descending=True, stable=True).int()
