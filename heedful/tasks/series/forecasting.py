"""Forecasting: a series of numbers goes on as its past suggests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from heedful.data.collate import Batch, Collate
from heedful.data.readers.number_series import NumberSeries, Waves
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking.page import Samples
from heedful.metrics.skill import MeanAbsoluteError, Skill
from heedful.objectives.regression import NextStep
from heedful.pipelines.number_rows import write_rows
from heedful.pipelines.scaled_series import Forecasting, Numbers, ScaledSeries, Window
from heedful.results import Series
from heedful.tasks.task import Task


def windows(splits: Splits[Any], learned: ScaledSeries) -> Splits[Window]:
    """Each part of a series as windows."""
    parts = {"train": splits.train, "valid": splits.valid, "test": splits.test}
    return Splits(*(windows_of(series, name, learned) for name, series in parts.items()))


def windows_of(series: Any, name: str, learned: ScaledSeries) -> list[Window]:
    """Every stretch of a series (T C) that is long enough to be forecast and judged; none where none is given."""
    if isinstance(series, tuple):
        return []
    if series.shape[1] != learned.channels:
        raise Refusal(
            f"the {name} part of the series has {series.shape[1]} channels and the model takes {learned.channels}; "
            "give one of as many"
        )
    past, whole = learned.past, learned.past + learned.horizon
    if len(series) < whole:
        raise Refusal(
            f"the {name} part of the series has {len(series)} steps and {whole} are needed; "
            "give a longer one, or a smaller data.longest or data.horizon"
        )
    starts = range(len(series) - whole + 1)
    return [Window(series[start : start + past], series[start + past : start + whole]) for start in starts]


@dataclass(frozen=True)
class WindowCollate(Collate[ScaledSeries]):
    """Windows, whose past and future are one series to learn from."""

    def length(self, sample: Window, learned: ScaledSeries) -> int:
        return learned.past + learned.horizon

    def batch(self, samples: Sequence[Window], learned: ScaledSeries) -> Batch:
        whole = np.stack([np.concatenate((sample.past, sample.future)) for sample in samples])
        return {"series": torch.from_numpy(whole)}

    def as_input(self, sample: Window, learned: ScaledSeries) -> str:
        return write_rows(sample.past)


def table(samples: Sequence[Window], results: Sequence[Series], learned: ScaledSeries) -> Samples:
    """The last steps that were known, what came, and what was forecast."""

    def last(rows: Any) -> Numbers:
        return np.array(rows, dtype=np.float32)[-1:]

    rows = tuple(
        (write_rows(one.past[-3:]), write_rows(one.future[-1:]), write_rows(last(said.steps)))
        for one, said in zip(samples, results, strict=True)
    )
    header = ("last steps known", f"{learned.horizon} steps later", "forecast")
    return Samples("Stretches it never saw", header, rows, None)


TASK = Task(
    name="series",
    readers={"waves": Waves, "files": NumberSeries},
    fit=ScaledSeries.fit,
    learned=ScaledSeries,
    encode=windows,
    collate=WindowCollate(),
    objective=NextStep(),
    metrics=(Skill(), MeanAbsoluteError()),
    watch="skill",
    pipeline=Forecasting("steps as numbers with commas, a semicolon between two steps: 1.0,2.0; 1.1,2.1"),
    table=table,
    families=("forecaster",),
)
