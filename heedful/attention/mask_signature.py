"""The signature of a mask, a key for caches: two masks with one signature show the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import torch

from heedful.attention.mask_and_bias import Everything, Mask

NUMBERS = (int, tuple, type(None), type(torch.logical_and))  # or what is made of them


def signature(mask: Mask) -> Hashable:
    """All that a mask is made of, where that is numbers and other such masks; None where it holds anything else."""
    told: list[Any] = [type(mask)]
    for part in parts_of(mask):
        told.append(signature(part) if isinstance(part, Mask) else part)
        if not isinstance(told[-1], NUMBERS) or (isinstance(part, Mask) and told[-1] is None):
            return None
    return tuple(told)


def numbers(mask: Mask) -> Mask:
    """The part of a mask that numbers alone define, without tensors such as padding; it hides no more than the mask."""
    told: Mask = Everything()
    for part in mask.all_of():
        told = told & part if signature(part) is not None else told
    return told


def structure(mask: Mask) -> Hashable:
    """The same of any mask: of what is no number, its kind alone."""
    told = (structure(part) if isinstance(part, Mask) else part for part in parts_of(mask))
    return (type(mask), *(part if isinstance(part, NUMBERS) else type(part) for part in told))


def parts_of(mask: Mask) -> Iterator[Any]:
    """The parts of a mask, one by one."""
    for value in vars(mask).values():
        yield from value if isinstance(value, tuple) else (value,)
