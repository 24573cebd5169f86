"""Calibration: whether what a model is 80 % sure of is right 80 times in a hundred (Guo et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.looking.page import Curve, Curves

BINS = 15
READING = "Each dot is answers that were about as sure; above the diagonal a model is too modest, below it too sure."
FEW = 10  # answers, below which their share of right ones is left to chance and not drawn


@dataclass(frozen=True)
class Bin:
    """Answers that were about as sure: how sure on average, how many of them right, how many there are."""

    chance: float
    right: float
    count: int


def bins(chances: Sequence[float], right: Sequence[bool], count: int = BINS) -> list[Bin]:
    """Answers by how sure they were, in steps of equal width; empty ones left out."""
    sure, hits = np.asarray(chances, dtype=np.float64), np.asarray(right, dtype=np.float64)
    place = np.clip(np.ceil(sure * count).astype(np.int64) - 1, 0, count - 1)  # (0, 1/n] is the first
    made = []
    for at in range(count):
        inside = place == at
        if inside.any():
            made.append(Bin(float(sure[inside].mean()), float(hits[inside].mean()), int(inside.sum())))
    return made


def error(made: Sequence[Bin]) -> float:
    """The expected calibration error: how far chance and truth lie apart, on average (Naeini et al., 2015)."""
    whole = sum(one.count for one in made)
    return sum(one.count * abs(one.chance - one.right) for one in made) / max(1, whole)


def diagram(made: Sequence[Bin]) -> Curves:
    """The reliability diagram: above the diagonal a model is too modest, below it too sure."""
    points = tuple((one.chance, one.right) for one in made if one.count >= FEW)
    named = f"share that is right, where {FEW} answers or more were as sure"
    lines = (
        Curve(named, points, "share that is right", along="chance that the model gave"),
        Curve("as sure as right", ((0.0, 0.0), (1.0, 1.0)), "share that is right", along="chance that the model gave"),
    )
    return Curves("How sure, and how often right", lines, READING)
