"""Linear maps by chance, and examples of what each does: what a decoder can learn to find out in context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.lazy_samples import check_size
from heedful.data.sample_dice import dice_of
from heedful.data.splits import Splits
from heedful.errors import Refusal

Numbers = NDArray[np.float32]
SIDES = {"train": 0, "valid": 1, "test": 2}


@dataclass(frozen=True)
class Prompt:
    """Examples of one map: inputs (K D), and what it makes of each (K)."""

    inputs: Numbers
    answers: Numbers
    place: int = 0


def draw_prompts(seed: int, epoch: int, places: Sequence[int], count: int, dimensions: int) -> list[Prompt]:
    """So many examples of a map for each place: a pure function of the seed, the epoch and the place.

    Inputs and maps are normal (Garg et al., 2022), maps scaled so that answers have a variance of one.
    """
    made = []
    for place, dice in zip(places, dice_of(seed, epoch, places).tolist(), strict=True):
        random = np.random.default_rng(dice % (1 << 64))
        numbers = random.standard_normal((count + 1, dimensions), dtype=np.float32)
        inputs, weights = numbers[1:], numbers[0] / np.float32(np.sqrt(dimensions))
        made.append(Prompt(inputs, inputs @ weights, place))
    return made


def maps(data: Any, seed: int) -> Splits[Prompt]:
    """Maps to choose by and to test on, and the first ones to learn from: every epoch draws others."""
    if data.name != "maps":
        raise Refusal(f"data={data.name}: maps are drawn by chance and read from no file; leave data out")
    counts = {"train": data.samples, "valid": max(1, data.held_out // 4), "test": data.held_out}
    check_size(data, 4 * (data.dimensions + 1) * data.longest * sum(counts.values()))
    parts = (draw_prompts(seed, -1 - SIDES[side], range(counts[side]), data.longest, data.dimensions) for side in SIDES)
    return Splits(*parts)


def least_squares(inputs: NDArray[np.floating], answers: NDArray[np.floating]) -> NDArray[np.float64]:
    """The least-squares answer (of least norm) to each input, from the examples before it: B K D, B K -> B K."""
    made = np.zeros(answers.shape)
    for count in range(1, answers.shape[1]):
        inverse = np.linalg.pinv(inputs[:, :count].astype(np.float64), rcond=1e-6)  # B D count
        weights = np.einsum("bdc,bc->bd", inverse, answers[:, :count])
        made[:, count] = np.einsum("bd,bd->b", weights, inputs[:, count])
    return made
