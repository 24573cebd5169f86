"""Callbacks and loggers (TensorBoard, CSV, Weights & Biases, MLflow): who hears what a run comes to, step by step."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from heedful.errors import Failure, Refusal
from heedful.looking.page import Samples
from heedful.registry import Registry
from heedful.safe.opening import content, inside
from heedful.safe.sealed_folders import replace_file

LONGEST = 200  # characters of the name by which a service knows a run


class Callback:
    """Callback of a run: any of these may be overridden, and the others hear nothing."""

    def on_begin(self, run: dict[str, Any]) -> None:
        """Hears the whole spec of a run, before its first step or where it goes on."""

    def on_log(self, step: int, values: dict[str, float]) -> None:
        """Hears what training came to at a step: the loss, each of several losses, the rate, samples a second."""

    def on_evaluate(self, step: int, split: str, scores: dict[str, float]) -> None:
        """Hears the scores of an evaluation, of the split `valid` or, at the end, `test`."""

    def on_samples(self, step: int, samples: Samples) -> None:
        """Hears of samples with the model's answers, where a task shows some at its evaluations."""

    def on_end(self, result: dict[str, Any]) -> None:
        """Hears the result of a finished run."""

    def on_close(self, finished: bool) -> None:
        """Hears last of all that nothing more comes, of a run that was stopped or failed too."""


class Logger(Callback):
    """Logger: a callback by name, made with the folder of a run and the step that it begins or goes on at."""

    package: ClassVar[str] = ""  # that it needs beside heedful's own, and the name of the extra that brings it

    def __init__(self, folder: Path, step: int = 0) -> None:
        self.folder, self.step = folder, step

    @classmethod
    def check(cls) -> None:
        """Refuses to begin where its package is not installed."""
        if cls.package and find_spec(cls.package) is None:
            cure = f"pip install 'heedful[{cls.package}]'"
            raise Refusal(f"training.loggers names {cls.package}, which is not installed; {cure}, or leave it out")

    def failed(self, error: Exception) -> Failure:
        """What a service said that could not be begun with, in one line."""
        why = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        return Failure(f"{self.package} cannot begin: {why}; mend that, or leave it out of training.loggers")

    def identity(self, make: Callable[[], str]) -> str:
        """The name by which a service knows this run: kept in its folder, so that a run that goes on is one run."""
        path = self.folder / f"{self.package}.id"
        if path.exists():
            try:
                return content(inside(path), LONGEST).decode("ascii").strip()
            except (OSError, ValueError) as error:
                raise Refusal(f"{path} cannot be read: {error}; remove it to log to a new run") from None
        made = make()
        replace_file(path, f"{made}\n")
        return made


LOGGERS: Registry[type[Logger]] = Registry(
    "logger",
    "heedful.loggers",
    {
        "tensorboard": "heedful.training.loggers.tensorboard_events:TensorBoard",
        "csv": "heedful.training.loggers.csv_table:CsvTable",
        "wandb": "heedful.training.loggers.weights_and_biases:WeightsAndBiases",
        "mlflow": "heedful.training.loggers.mlflow_runs:MlflowRuns",
    },
)  # that a run names: training.loggers=[csv, wandb]
