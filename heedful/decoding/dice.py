"""Dice: numbers between 0 and 1 that an answer has for itself, whoever else is being answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy
import torch
from numpy.random import PCG64, Generator, SeedSequence
from torch import Tensor

from heedful.errors import Refusal

AHEAD = 32  # throws made at once


class Dice:
    """One die for each of `draws` answers to each numbered source: its throws follow from these numbers alone.

    Nobody else's dice are touched, and the order and company in which sources are answered change nothing.
    """

    def __init__(self, seed: int, numbers: Iterable[int], draws: int = 1) -> None:
        if seed < 0:
            raise Refusal(f"seed={seed} is below 0; give 0 or more")
        if draws < 1:
            raise Refusal(f"{draws} draws give no answer; ask for 1 or more")
        keys = ((number, draw) for number in numbers for draw in range(draws))
        self.dice = [Generator(PCG64(SeedSequence(seed, spawn_key=key))) for key in keys]
        self.thrown = numpy.empty((len(self.dice), 0))

    def throw(self, which: Sequence[int], step: int) -> Tensor:
        """The number of each of these dice at a step, at least 0 and below 1; steps are asked for in order."""
        if step % AHEAD == 0:
            self.thrown = numpy.empty((len(self.dice), AHEAD))
            for at in which:
                self.thrown[at] = self.dice[at].random(AHEAD)
        return torch.from_numpy(self.thrown[which, step % AHEAD])
