"""Readers of sets of vectors, each with a label: clouds that are made on the fly, and a user's CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heedful.data import line_files
from heedful.data.held_values import label_in_memory
from heedful.data.parallel_sample import Sides
from heedful.data.readers.reader import Bounded, Made, Ranged, SampleFiles
from heedful.data.splits import Splits, divide_samples, open_splits
from heedful.data.toys import series_sets
from heedful.data.toys.series_sets import Labelled
from heedful.errors import Refusal


class Clouds(Bounded, Ranged, Made):
    """Sets of points on a plane that lie in one to four heaps."""

    def read(self, seed: int) -> Splits[Labelled]:
        return series_sets.clouds(self, seed)


class VectorSets(Bounded, SampleFiles):
    """Your own sets: a CSV with a line for each element: the name of its set, the label of the set, then numbers."""

    def sample(self, given: Any) -> Labelled:
        """The vectors of a set, and its label."""
        if isinstance(given, Labelled):
            return given
        vectors, label = given
        return Labelled(np.asarray(vectors, dtype=np.float32), label_in_memory(label))

    def read(self, seed: int) -> Splits[Labelled]:
        def divide(sets: Sequence[Labelled], what: str) -> Splits[Labelled]:
            return divide_samples(sets, lambda one: one.vectors.tobytes(), what, self.cut)

        return open_splits(self, sets_of, divide, ("clouds",))


def sets_of(path: str | Sides) -> list[Labelled]:
    """The sets of a CSV."""
    if isinstance(path, Sides):
        raise Refusal("sets are read from one CSV, not from a source and a target; give data=sets.csv")
    members: dict[str, tuple[str, list[list[float]]]] = {}
    for number, (name, label), row in line_files.numbers(path, labelled=2):
        first, rows = members.setdefault(name, (label, []))
        if label != first:
            raise Refusal(
                f"{path}, line {number}: set {name!r} is labelled {label!r} here and {first!r} before; "
                "give all its lines one label, or the sets two names"
            )
        rows.append(row)
    if not members:
        raise Refusal(f"{path} holds no set; write a line a member: set,label,number,number,...")
    return [Labelled(np.array(rows, dtype=np.float32), label) for label, rows in members.values()]
