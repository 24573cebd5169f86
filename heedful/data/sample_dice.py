"""Dice that are kept nowhere: numbers by chance that follow from (seed, epoch, sample) alone, on any device.

A counter goes through a mixing function (SplitMix64: Steele et al., 2014). Whole numbers are the same everywhere, so
that an image is varied alike whatever batch, process or device it is in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Whole = TypeVar("Whole", Tensor, NDArray[np.int64])
STEP = 0x9E3779B97F4A7C15 - (1 << 64)  # as numbers with a sign
MIXERS = ((30, 0xBF58476D1CE4E5B9 - (1 << 64)), (27, 0x94D049BB133111EB - (1 << 64)))
BITS = 24  # of a draw: as many as a float32 holds exactly


def dice_of(seed: int, epoch: int, samples: Sequence[int]) -> NDArray[np.int64]:
    """A number for each sample, by its place in its gallery: B."""
    digest = hashlib.sha256(f"{seed} {epoch} images".encode()).digest()
    first = np.array(int.from_bytes(digest[:8], "big", signed=True), dtype=np.int64)
    return mix_bits(np.asarray(samples, dtype=np.int64) * STEP + first)


def steady_dice(first: int, count: int, device: torch.device) -> Tensor:
    """The dice of images that are scored or shown, from such a place on: the same every time."""
    return torch.from_numpy(dice_of(0, 0, range(first, first + count))).to(device)


def mix_bits(x: Whole) -> Whole:
    """Whole numbers of 64 bits that look like chance, one for each number; those of arrays and tensors agree."""
    for shift, factor in MIXERS:
        x = (x ^ shift_right(x, shift)) * factor
    return x ^ shift_right(x, 31)


def shift_right(x: Whole, by: int) -> Whole:
    """Bits moved to the right, zeros coming in: a shift alone brings in the sign."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def draw(dice: Tensor, count: int, purpose: int = 0) -> Tensor:
    """So many numbers from 0 up to 1 of each dice, others for each purpose: B -> B count."""
    counter = torch.arange(1, count + 1, device=dice.device) + (purpose << 20)
    return shift_right(mix_bits(dice[:, None] + counter * STEP), 64 - BITS).to(torch.float32) / (1 << BITS)
