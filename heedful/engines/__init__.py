"""Engines: fast paths that stand beside a model and answer what it answers, each by its name."""

from heedful.engines.engine import (
    ENGINES,
    Engine,
    InferenceEngine,
    Weights,
    choose,
    inference,
    refresh,
    refusals,
    runner,
)

__all__ = ["ENGINES", "Engine", "InferenceEngine", "Weights", "choose", "inference", "refresh", "refusals", "runner"]
