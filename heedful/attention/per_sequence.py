"""Sequences that stand at unlike places of a batch, as prompts do that end together, each as a sight of its own."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention.lowering_cache import once
from heedful.attention.mask_and_bias import may_ask
from heedful.attention.sight import Sight

Own = tuple[Tensor, Sight]  # where members of a sequence stand in its line, and what they see of one another


def apart(sight: Sight) -> list[Own]:
    """Each sequence of a long batch with padding before or behind it, where they had better look one by one.

    There is none where they had not: where a mask has to be told pair by pair.
    """
    if sight.counted or sight.start or type(sight) is not Sight or sight.rows.shape != sight.columns.shape:
        return []
    if not may_ask(sight.rows):
        return []
    return once(sight._added, "apart", lambda: find_by_places(sight))


def find_by_places(sight: Sight) -> list[Own]:
    """The same, by where rows and columns stand."""
    rows = sight.rows.expand(sight.batch, -1)
    if not torch.equal(rows, sight.columns.expand(sight.batch, -1)):
        return []
    numbers = torch.arange(sight.batch, device=rows.device)
    lines = [alone(sight, line, number) for line, number in zip(rows, numbers.split(1), strict=True)]
    whole = [line for line in lines if line is not None]
    pays = any(own.is_causal or own.is_open or own.pays_in_parts or own.pays_in_blocks for _, own in whole)
    return whole if pays and len(whole) == len(lines) else []


def alone(sight: Sight, line: Tensor, number: Tensor) -> Own | None:
    """A line whose members count on by one, from 0 or from where they like; None of any other."""
    there = (line >= 0).nonzero().flatten()
    start = int(line[there[0]]) if len(there) else 0
    here = torch.arange(start, start + len(there), device=line.device)[None]
    if not torch.equal(line[there], here[0]):
        return None
    bias = None if sight.bias is None else sight.bias.take(number)
    own = Sight(sight.mask.take(number), here, here, 1, bias, counted=start == 0)
    own.start = start
    return there, own
