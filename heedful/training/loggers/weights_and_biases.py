"""Weights & Biases (wandb): a run there for a run here; WANDB_PROJECT, WANDB_MODE=offline and its other words count."""

from __future__ import annotations

import os
import secrets
from typing import Any, ClassVar

from heedful.looking.page import Samples
from heedful.training.callbacks import Logger


class WeightsAndBiases(Logger):
    """Weights & Biases: the spec as config, curves, tables of samples and the scores of the test as summary."""

    package: ClassVar[str] = "wandb"
    run: Any = None

    def on_begin(self, run: dict[str, Any]) -> None:
        import wandb

        project, name = os.environ.get("WANDB_PROJECT", "heedful"), self.identity(lambda: secrets.token_hex(8))
        self.run = wandb.init(project=project, name=self.folder.name, id=name, resume="allow", config=run)

    def on_log(self, step: int, values: dict[str, float]) -> None:
        self.run.log({f"train/{name}": value for name, value in values.items()}, step=step)

    def on_evaluate(self, step: int, split: str, scores: dict[str, float]) -> None:
        self.run.log({f"{split}/{name}": value for name, value in scores.items()}, step=step)

    def on_samples(self, step: int, samples: Samples) -> None:
        import wandb

        table = wandb.Table(columns=[*samples.header], data=[[*row] for row in samples.rows])
        self.run.log({"samples": table}, step=step)

    def on_end(self, result: dict[str, Any]) -> None:
        self.run.summary.update({f"test/{name}": value for name, value in result["scores"].items()})

    def on_close(self, finished: bool) -> None:
        if self.run is not None:
            self.run.finish(exit_code=0 if finished else 1)
