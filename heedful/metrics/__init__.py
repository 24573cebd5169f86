"""Metrics: how good answers are, in figures that can be merged over processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heedful.registry import Registry

if TYPE_CHECKING:
    from heedful.metrics.metric import Metric

# Metrics that a run may ask for beside those of its task, `metrics=[NAME]`; they need nothing but samples and results.
METRICS: Registry[type[Metric[Any]]] = Registry(
    "metric",
    "heedful.metrics",
    {
        "accuracy": "heedful.metrics.accuracy:Accuracy",
        "balanced_accuracy": "heedful.metrics.balanced_accuracy:BalancedAccuracy",
        "macro_f1": "heedful.metrics.macro_f1:MacroF1",
        "calibration_error": "heedful.metrics.calibration_error:CalibrationError",
        "rouge": "heedful.metrics.rouge:Rouge",
        "bleu": "heedful.metrics.bleu:Bleu",
        "chrf": "heedful.metrics.bleu:ChrF",
    },
)
