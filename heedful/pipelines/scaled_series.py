"""Forecasting pipeline: a past becomes the steps to come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from heedful.data.readers.number_series import Forecastable, series_of
from heedful.data.splits import Splits
from heedful.decoding import roll
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps import maps_of_seen
from heedful.looking.page import Example
from heedful.models.numerics import device_of
from heedful.models.series.forecaster import Forecaster
from heedful.pipelines.learned import Learned
from heedful.pipelines.number_rows import rows_of, words
from heedful.pipelines.pipeline import Columns, Heard, Pipeline, Search, unheard
from heedful.results import Result, Series, Unread

Numbers = NDArray[np.float32]
MANY = 10_000_000  # steps or channels, at most, that a file may say there are: as many as data may have
ENDLESS = "the forecast is not finite; give steps more like those that the model was trained on"
AT_ONCE = 500  # pasts of one length that are answered together


@dataclass(frozen=True)
class Window:
    """A stretch of a series (T C): what is known, and the steps after it."""

    past: Numbers
    future: Numbers


@dataclass(frozen=True)
class ScaledSeries(Learned):
    """The scale of a series, channel by channel, and how many steps are known and forecast."""

    channels: int
    past: int
    horizon: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def fit(cls, splits: Splits[Any], reader: Forecastable, seed: int) -> Self:
        """Learns of the part of a series to learn from."""
        train = np.asarray(splits.train, dtype=np.float64)
        mean, deviation = train.mean(0).tolist(), np.maximum(train.std(0), 1e-6).tolist()
        return cls(train.shape[1], reader.longest, reader.horizon, tuple(mean), tuple(deviation))

    def facts(self) -> dict[str, Any]:
        return {"channels": self.channels}

    def state(self) -> dict[str, Any]:
        return {"channels": self.channels, "past": self.past, "horizon": self.horizon,
                "mean": list(self.mean), "deviation": list(self.deviation)}  # fmt: skip

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        channels, past, horizon = (int(state[key]) for key in ("channels", "past", "horizon"))
        mean, deviation = (tuple(float(number) for number in state[key]) for key in ("mean", "deviation"))
        if not all(1 <= number <= MANY for number in (channels, past, horizon)):
            raise ValueError(f"its numbers are not between 1 and {MANY}")
        if {len(mean), len(deviation)} != {channels}:
            raise ValueError("its numbers do not fit together")
        return cls(channels, past, horizon, mean, deviation)


@dataclass(frozen=True)
class Forecasting(Pipeline[ScaledSeries]):
    """Forecasting: rows of numbers, or a CSV's name, become the steps to come."""

    endings: ClassVar[tuple[str, ...]] = (".csv",)

    def column_names(self) -> Columns:
        return (("input", "series", "past"),)

    def accepts(self, given: Any, learned: ScaledSeries) -> Window:
        """The past that an input gives, at most as long as in training."""
        is_file = isinstance(given, str | Path) and str(given).strip().lower().endswith(".csv")
        past = series_of(str(given).strip()) if is_file else rows_of(given, learned.channels, self.input)
        if past.shape[1] != learned.channels:
            raise Refusal(f"{given} has {past.shape[1]} channels and the model takes {learned.channels}; give as many")
        return Window(past[-learned.past :], past[:0])

    def results(self, model: nn.Module, samples: Sequence[Window], learned: ScaledSeries, heard: Heard) -> list[Series]:
        answers: dict[int, Numbers] = {}
        for length in sorted({len(one.past) for one in samples}):
            alike = [at for at, one in enumerate(samples) if len(one.past) == length]
            for start in range(0, len(alike), AT_ONCE):
                some = alike[start : start + AT_ONCE]
                batch = torch.from_numpy(np.stack([samples[at].past for at in some])).to(device_of(model))
                made = roll(cast(Forecaster, model), batch, learned.horizon).float().cpu().numpy()
                answers |= dict(zip(some, made, strict=True))
                heard(len(some))
        return [Series(tuple(map(tuple, answers[at].tolist()))) for at in range(len(samples))]

    def predict(
        self, model: nn.Module, inputs: Iterable[Any], learned: ScaledSeries, heard: Heard = unheard
    ) -> Iterator[Result]:
        return (finite(cast(Series, one)) for one in super().predict(model, inputs, learned, heard))

    def ask(
        self, model: nn.Module, inputs: Iterable[Any], learned: ScaledSeries, search: Search, heard: Heard = unheard
    ) -> Iterator[Sequence[Result]]:
        found = super().ask(model, inputs, learned, search, heard)
        return ([one if is_finite(one) else Unread(ENDLESS) for one in answers] for answers in found)

    def look(self, model: nn.Module, given: Any, learned: ScaledSeries) -> Example:
        sample = self.accepts(given, learned)
        model.eval()
        answer = np.array(finite(self.results(model, [sample], learned, unheard)[0]).steps, dtype=np.float32)
        whole = np.concatenate((sample.past, answer))
        with torch.no_grad(), look(model) as seen:
            model(torch.from_numpy(whole)[None].to(device_of(model)))
        rows = words(whole)
        return Example(
            f"{len(sample.past)} steps → {learned.horizon} more", maps_of_seen(seen, lambda path: (rows, rows))
        )


def finite(forecast: Series) -> Series:
    """A forecast that somebody asked for; one that is not finite is refused."""
    if not is_finite(forecast):
        raise Refusal(ENDLESS)
    return forecast


def is_finite(answer: Result) -> bool:
    """Whether an answer is no forecast with a number in it that is not finite."""
    return not isinstance(answer, Series) or bool(np.isfinite(np.array(answer.steps)).all())
