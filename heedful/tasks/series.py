"""Forecasting: a series goes on as its past suggests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.data_spec import DataSpec, Sides
from heedful.data.formats import line_files
from heedful.data.splits import Splits, opened
from heedful.data.toys import series_sets
from heedful.decoding import roll
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps_of_seen import maps
from heedful.looking.page import Example, Samples
from heedful.models.numerics import device_of, precise
from heedful.models.series.forecaster import Forecaster
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Result
from heedful.results import Series as Forecast
from heedful.tasks.closed import PLAIN, Task, Terms
from heedful.tasks.numbers import read_rows, words, write_rows

Numbers = NDArray[np.float32]
MANY = 10_000_000  # steps or channels, at most, that a file may say there are: as many as data may have


@dataclass(frozen=True)
class Window:
    """A stretch of a series (T C): what is known, and the steps after it."""

    past: Numbers
    future: Numbers


class Series(Task):
    """Forecasts the next steps of a series; scored by the squared error against repeating the last value."""

    name: ClassVar[str] = "series"
    family: ClassVar[str] = "forecaster"
    watch: ClassVar[str] = "skill"
    keys: ClassVar[frozenset[str]] = frozenset({"longest", "horizon"})
    ordered: ClassVar[bool] = True
    input: ClassVar[str] = "steps as numbers with commas, a semicolon between two steps: 1.0,2.0; 1.1,2.1"

    def __init__(self, channels: int, past: int, horizon: int, mean: list[float], deviation: list[float]) -> None:
        self.channels, self.past, self.horizon, self.mean, self.deviation = channels, past, horizon, mean, deviation

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Window]]:
        splits = stretches(data, seed)
        train = np.asarray(splits.train, dtype=np.float64)
        if train.ndim != 2:
            raise Refusal("data.train is not given; add data.train=...")
        deviation = np.maximum(train.std(0), 1e-6)
        task = cls(train.shape[1], data.longest, data.horizon, train.mean(0).tolist(), deviation.tolist())
        return task, task.cut(splits)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Window]:
        return self.cut(stretches(data, seed))

    def cut(self, splits: Splits[Any]) -> Splits[Window]:
        """Each part of a series as windows."""
        return Splits(
            self.windows(splits.train, "train"), self.windows(splits.valid, "valid"), self.windows(splits.test, "test")
        )

    def windows(self, series: Any, name: str) -> list[Window]:
        """Every stretch of a series (T C) that is long enough to be forecast and judged; none where none is given."""
        if isinstance(series, tuple):
            return []
        if series.shape[1] != self.channels:
            raise Refusal(
                f"the {name} part of the series has {series.shape[1]} channels and the model takes {self.channels}; "
                "give one of as many"
            )
        last = len(series) - self.past - self.horizon
        if last < 0:
            raise Refusal(
                f"the {name} part of the series has {len(series)} steps and {self.past + self.horizon} are needed; "
                "give a longer one, or a smaller data.longest or data.horizon"
            )
        cut = [(at, at + self.past, at + self.past + self.horizon) for at in range(last + 1)]
        return [Window(series[start:now], series[now:end]) for start, now, end in cut]

    def numbers(self) -> dict[str, int]:
        return {"channels": self.channels}

    def prepare(self, model: nn.Module) -> None:
        assert isinstance(model, Forecaster)
        model.mean.copy_(torch.tensor(self.mean))
        model.deviation.copy_(torch.tensor(self.deviation))

    def length(self, sample: Window) -> int:
        return self.past + self.horizon

    def batch(self, samples: Sequence[Window]) -> Batch:
        whole = np.stack([np.concatenate((sample.past, sample.future)) for sample in samples])
        return {"series": torch.from_numpy(whole)}

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        series = batch["series"]
        error = (model(series[:, :-1]) - series[:, 1:]) / model.deviation
        return precise(error).square().sum(), torch.tensor(error.numel())

    def score(self, model: nn.Module, samples: Sequence[Window]) -> dict[str, float]:
        future = np.stack([sample.future for sample in samples])
        ours = future - self.forecast(model, [sample.past for sample in samples])
        last = future - np.stack([sample.past[-1:] for sample in samples])
        deviation = np.array(self.deviation)
        naive = float(np.square(last / deviation).mean())
        skill = 1 - float(np.square(ours / deviation).mean()) / max(naive, 1e-12)
        return {"skill": skill, "mean_absolute_error": float(np.abs(ours).mean())}

    def forecast(self, model: nn.Module, pasts: Sequence[Numbers], size: int = 500) -> Numbers:
        """The next steps after each past, all of one length: N horizon C."""
        made = []
        for start in range(0, len(pasts), size):
            batch = torch.from_numpy(np.stack(pasts[start : start + size])).to(device_of(model))
            made.append(roll(cast(Forecaster, model), batch, self.horizon).float().cpu().numpy())
            self.tell(len(batch))
        return np.concatenate(made)

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        for past in read_all(inputs, self.known):
            yield Forecast(tuple(map(tuple, self.answer(model, past).tolist())))

    def answer(self, model: nn.Module, past: Numbers) -> Numbers:
        """The next steps after one past that somebody asked for."""
        made: Numbers = self.forecast(model, [past])[0]
        if not np.isfinite(made).all():
            raise Refusal("the forecast is not finite; give steps more like those that the model was trained on")
        return made

    def known(self, text: str) -> Numbers:
        """The past that an input gives, a CSV's name or the numbers themselves, at most as long as in training."""
        if not text.strip().lower().endswith(".csv"):
            return read_rows(text, self.channels, self.input)[-self.past :]
        past = series(text.strip())
        if past.shape[1] != self.channels:
            raise Refusal(f"{text} has {past.shape[1]} channels and the model takes {self.channels}; give as many")
        return past[-self.past :]

    def look(self, model: nn.Module, text: str) -> Example:
        past = self.known(text)
        model.eval()
        whole = np.concatenate((past, self.answer(model, past)))
        with torch.no_grad(), look(model) as seen:
            model(torch.from_numpy(whole)[None].to(device_of(model)))
        return Example(
            f"{len(past)} steps → {self.horizon} more", maps(seen, lambda path: (words(whole), words(whole)))
        )

    def show(self, model: nn.Module, samples: Sequence[Window]) -> Samples:
        made = self.forecast(model, [sample.past for sample in samples])
        rows = tuple(
            (write_rows(s.past[-3:]), write_rows(s.future[-1:]), write_rows(ours[-1:]))
            for s, ours in zip(samples, made, strict=True)
        )
        header = ("last steps known", f"{self.horizon} steps later", "forecast")
        return Samples("Stretches it never saw", header, rows, None)

    def write_input(self, sample: Window) -> str:
        return write_rows(sample.past)

    def state(self) -> dict[str, Any]:
        return {"channels": self.channels, "past": self.past, "horizon": self.horizon,
                "mean": self.mean, "deviation": self.deviation}  # fmt: skip

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        channels, past, horizon = (int(state[key]) for key in ("channels", "past", "horizon"))
        mean, deviation = ([float(number) for number in state[key]] for key in ("mean", "deviation"))
        if not all(1 <= number <= MANY for number in (channels, past, horizon)):
            raise ValueError(f"its numbers are not between 1 and {MANY}")
        if {len(mean), len(deviation)} != {channels}:
            raise ValueError("its numbers do not fit together")
        return cls(channels, past, horizon, mean, deviation)


def stretches(data: DataSpec, seed: int) -> Splits[Any]:
    """A series made on the fly, or a user's own; one file is cut in time, a tenth to choose by and a tenth to test."""
    if data.name == "waves":
        return series_sets.waves(data, seed)
    return opened(data, series, in_time, ("waves",))


def in_time(whole: Numbers, what: str) -> Splits[Any]:
    """A series cut in three, in the order of time."""
    if len(whole) < 10:
        raise Refusal(f"{what} has {len(whole)} steps, too few to hold some out; give a longer series")
    train, valid, test = np.split(whole, [8 * len(whole) // 10, 9 * len(whole) // 10])
    return Splits(train, valid, test)  # type: ignore[arg-type]


def series(path: str | Sides) -> Numbers:
    """The series of a CSV, a line a step: T C."""
    if isinstance(path, Sides):
        raise Refusal("a series is read from one CSV, not from a source and a target; give data=series.csv")
    rows = [row for _, _, row in line_files.numbers(path)]
    if not rows:
        raise Refusal(f"{path} holds no numbers; write a line a step: number,number,...")
    return np.array(rows, dtype=np.float32)
