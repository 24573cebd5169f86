"""MLflow: a run there for a run here; MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME say where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from heedful.training.callbacks import Logger
from heedful.training.run_folder import flat

if TYPE_CHECKING:
    from mlflow import MlflowClient

LONGEST = 500  # characters of a parameter's value that every server takes


class MlflowRuns(Logger):
    """MLflow: the spec as parameters, curves as metrics, and the status of the run as it ended."""

    package: ClassVar[str] = "mlflow"
    client: MlflowClient

    def __init__(self, folder: Path, step: int = 0) -> None:
        super().__init__(folder, step)
        self.name = ""

    def on_begin(self, run: dict[str, Any]) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self.client = MlflowClient()
        self.name = self.identity(self.create)
        self.client.update_run(self.name, status="RUNNING")
        if not self.step:
            params = [Param(key, str(value)[:LONGEST]) for key, value in flat(run).items() if value is not None]
            self.client.log_batch(self.name, params=params[:100])

    def create(self) -> str:
        """A new run in the experiment that is named, or in one called heedful."""
        called = os.environ.get("MLFLOW_EXPERIMENT_NAME", "heedful")
        found = self.client.get_experiment_by_name(called)
        where = found.experiment_id if found else self.client.create_experiment(called)
        return str(self.client.create_run(where, run_name=self.folder.name).info.run_id)

    def on_log(self, step: int, values: dict[str, float]) -> None:
        self.write(step, "train", values)

    def on_evaluate(self, step: int, split: str, scores: dict[str, float]) -> None:
        self.write(step, split, scores)

    def write(self, step: int, split: str, values: dict[str, float]) -> None:
        """Sends each number as a metric."""
        for name, value in values.items():
            self.client.log_metric(self.name, f"{split}/{name}", float(value), step=step)

    def on_close(self, finished: bool) -> None:
        if self.name:
            self.client.set_terminated(self.name, "FINISHED" if finished else "KILLED")
