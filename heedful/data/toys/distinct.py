"""Samples made by chance, no two alike: what is tested was never learned from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from random import Random
from typing import Any

from heedful.data.splits import Sample, Splits
from heedful.errors import Refusal

TRIES = 20  # for each sample


def unlike(make: Callable[[Random], Sample], key: Callable[[Sample], Hashable], data: Any, seed: int) -> Splits[Sample]:
    """As many samples as the data ask for, as a pure function of the seed; a key tells which are alike."""
    random, valid, test = Random(seed), max(data.held_out // 4, 1), data.held_out
    wanted, made = data.samples + valid + test, dict[Hashable, Sample]()
    for _ in range(TRIES * wanted):
        one = make(random)
        made[key(one)] = one
        if len(made) == wanted:
            break
    else:
        raise Refusal(
            f"only {len(made):,} different samples of {data.name} were found, not {wanted:,}; "
            "lower data.samples and data.held_out"
        )
    rows = list(made.values())
    return Splits(rows[valid + test :], rows[:valid], rows[valid : valid + test])
