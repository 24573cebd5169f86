"""Ablation: what initial weights are worth, by the same run from scratch, or with only its outputs learning (probe)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.looking.page import Curve, Curves, Figures, Section
from heedful.training.adapt.freeze_and_lora import others
from heedful.training.prepare import Ready
from heedful.training.record import result, rows
from heedful.training.spec.run_spec import RunSpec
from heedful.training.spec.training_spec import TrainingSpec

SCORES = "The score to choose by as each of them learned: a start is worth what lies between the lines."
SAID = {"scratch": "from scratch", "probe": "its outputs alone learning"}  # also the folders within the other's
SHORT = 2  # digits of a difference
# What spares a beginning, and from scratch spares nothing.
PLAIN: dict[str, Any] = {"freeze": [], "lora": None, "layer_decay": TrainingSpec().layer_decay}


def vary(ready: Ready, word: str) -> RunSpec:
    """The same run from random weights, or with everything but its outputs frozen."""
    run = ready.run  # whose model is told in full
    about = f"{run.about.rstrip('.')}, {SAID[word]}." if run.about else f"The same, {SAID[word]}."
    changes: dict[str, Any] = {"compare": [], "about": about, "expected": None}
    if word == "scratch":
        whole = run.training.model_copy(update=PLAIN)  # what was never learned must not be left as it is
        return run.model_copy(update=changes | {"start": "", "training": whole})
    frozen = run.training.model_copy(update={"freeze": others(ready.model), "lora": None})
    return run.model_copy(update=changes | {"training": frozen})


def beside(out: Path, scores: dict[str, float], watch: str, share: Callable[[str], bool]) -> list[Section]:
    """The sections of a report that compare a run with its ablations: scores side by side, and learning curves."""
    there = {word: out / word for word in SAID if (out / word / "result.json").exists()}
    sections: list[Section] = []
    for word, place in there.items():
        other: dict[str, Any] = result(place)
        cards = tuple(card(name, scores[name], other["scores"][name], share(name), other["step"]) for name in scores)
        sections.append(Figures(f"What the beginning is worth: beside the same model, {SAID[word]}", cards))
    folders = {"this run": out} | {SAID[word]: place for word, place in there.items()}
    curves = tuple(curve(f"{watch}, {name}", folder, watch) for name, folder in folders.items())
    return [*sections, Curves("How they learned", curves, SCORES)] if there else []


def card(name: str, own: float, other: float, share: bool, steps: int) -> tuple[str, str, str]:
    """A score of both runs, as a card shows it: a difference of shares is in points of a hundred."""
    times, unit, points = (100, " %", " points") if share else (1, "", "")
    more = f"{times * (own - other):+.{SHORT}f}{points}"
    both = f"{times * own:.{SHORT}f}{unit} against {times * other:.{SHORT}f}{unit}"
    return name.replace("_", " "), more, f"{both}, in {steps:,} steps at most each"


def curve(name: str, folder: Path, watch: str) -> Curve:
    """How a score grew on validation data."""
    told = [row for row in rows(folder / "metrics.jsonl") if row.get("split") == "valid" and watch in row]
    return Curve(name, tuple((row["step"], row[watch]) for row in told), f"{watch.replace('_', ' ')} on validation")
