"""Regression: squared errors of what a model foretells, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn

from heedful.data.collate import Batch
from heedful.models.numerics import precise
from heedful.models.series.forecaster import Forecaster
from heedful.objectives.objective import Loss, Objective
from heedful.pipelines.scaled_series import ScaledSeries


@dataclass(frozen=True)
class NextStep(Objective[ScaledSeries]):
    """Forecasting: the squared error of each next step of a series, in deviations of its channel."""

    def losses(self, model: nn.Module, batch: Batch, learned: ScaledSeries) -> dict[str, Loss]:
        series = batch["series"]
        error = (model(series[:, :-1]) - series[:, 1:]) / model.deviation
        return {"loss": Loss(precise(error).square().sum(), torch.tensor(error.numel()))}

    def on_train_begin(self, model: nn.Module, learned: ScaledSeries) -> None:
        model = cast(Forecaster, model)
        model.mean.copy_(torch.tensor(learned.mean))
        model.deviation.copy_(torch.tensor(learned.deviation))


@dataclass(frozen=True)
class InContextRegression(Objective[Any]):
    """In-context regression: the squared error of each answer of a prompt, at its input (Garg et al., 2022)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        error = precise(model(batch["series"])[:, ::2, -1]) - batch["answer"]
        return {"loss": Loss(error.square().sum(), torch.full((), error.numel(), device=error.device))}
