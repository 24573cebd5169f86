"""Readers of series of numbers and of maps to be learned in context: made on the fly, or a user's CSV."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data import line_files
from heedful.data.near_duplicates import WHOLE, Cut
from heedful.data.parallel_sample import Sides
from heedful.data.readers.reader import Files, Made, Many, Reader
from heedful.data.splits import Splits, open_splits
from heedful.data.toys import linear_maps, series_sets
from heedful.data.toys.linear_maps import Prompt
from heedful.errors import Refusal

Numbers = NDArray[np.float32]


class Forecastable(Reader):
    """The keys of a series that is forecast."""

    longest: Many = 24
    """How many past steps the model sees."""
    horizon: Many = 24
    """How many future steps the model forecasts."""


class Waves(Forecastable, Made):
    """A series of two channels: a daily wave whose strength drifts, a weekly one, and a little noise."""

    def read(self, seed: int) -> Splits[Any]:
        return series_sets.waves(self, seed)


class NumberSeries(Forecastable, Files):
    """Your own series: a CSV with a line for each step; the last tenth is for testing, that before for validation."""

    def from_memory(self, samples: Any) -> Splits[Any]:
        """The steps of a series, or of three: to learn from, to choose by and to test on."""
        if isinstance(samples, Splits):
            parts = (np.asarray(part, dtype=np.float32) for part in (samples.train, samples.valid, samples.test))
            return Splits(*parts)  # type: ignore[arg-type]  # an array is a sequence of rows
        return in_time(np.asarray(samples, dtype=np.float32), "what lies in memory")

    def read(self, seed: int) -> Splits[Any]:
        return open_splits(self, series_of, lambda whole, what: in_time(whole, what, self.cut), ("waves",))


class Maps(Made):
    """Linear maps that are drawn by chance, told by examples alone."""

    longest: Many = 24
    """How many examples of a map stand in a prompt."""
    dimensions: Many = 5
    """The number of inputs of each linear map."""

    def read(self, seed: int) -> Splits[Prompt]:
        if self.longest < 2:
            said = f"data.longest={self.longest} leaves no example before the input that is asked"
            raise Refusal(f"{said}; give 2 or more")
        return linear_maps.maps(self, seed)


def in_time(whole: Numbers, what: str, cut: Cut = WHOLE) -> Splits[Any]:
    """A series cut in three, in the order of time."""
    if len(whole) < 10:
        raise Refusal(f"{what} has {len(whole)} steps, too few to hold some out; give a longer series")
    train, valid, test = np.split(
        whole, [(10 - cut.valid - cut.test) * len(whole) // 10, (10 - cut.test) * len(whole) // 10]
    )
    return Splits(train, valid, test)  # type: ignore[arg-type]  # an array is a sequence of rows


def series_of(path: str | Sides) -> Numbers:
    """The series of a CSV, a line a step: T C."""
    if isinstance(path, Sides):
        raise Refusal("a series is read from one CSV, not from a source and a target; give data=series.csv")
    rows = [row for _, _, row in line_files.numbers(path)]
    if not rows:
        raise Refusal(f"{path} holds no numbers; write a line a step: number,number,...")
    return np.array(rows, dtype=np.float32)
