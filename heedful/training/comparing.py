"""What a beginning is worth: the same run from scratch beside it, with the same model, data, steps and seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.checkpoints.reading import read_json
from heedful.looking.page import Curve, Curves, Figures, Section
from heedful.training.record import rows
from heedful.training.spec import RunSpec

SCRATCH = "scratch"  # the folder of the run that begins with chance, within the other's
SHORT = 2  # digits of a difference


def from_scratch(run: RunSpec) -> RunSpec:
    """The same run, begun with chance; `run` is one whose model is told in full."""
    about = f"{run.about.rstrip('.')}, from scratch." if run.about else "The same from scratch."
    return run.model_copy(update={"start": "", "compare": "", "about": about, "expected": None})


def beside(out: Path, scores: dict[str, float], watch: str, shares: tuple[str, ...]) -> list[Section]:
    """What a report says of the run from scratch, where there is one: its scores beside these, and how both learned."""
    place = out / SCRATCH
    if not (place / "result.json").exists():
        return []
    other: dict[str, Any] = read_json(place / "result.json")
    cards = tuple(card(name, scores[name], other["scores"][name], name in shares) for name in scores)
    steps = f"The same model from scratch, with the same {other['step']:,} steps at most"
    curves = [curve(f"{watch}, {name}", folder, watch) for name, folder in (("begun", out), ("from scratch", place))]
    return [
        Figures(f"What the beginning is worth: {steps[0].lower()}{steps[1:]}", cards),
        Curves("Both", tuple(curves)),
    ]


def card(name: str, own: float, other: float, share: bool) -> tuple[str, str, str]:
    """A score of both runs, as a card shows it."""
    times, unit = (100, " %") if share else (1, "")
    more = f"{times * (own - other):+.{SHORT}f}"
    return name.replace("_", " "), more, f"{times * own:.{SHORT}f}{unit} against {times * other:.{SHORT}f}{unit}"


def curve(name: str, folder: Path, watch: str) -> Curve:
    """How a score grew on validation data."""
    told = [row for row in rows(folder / "metrics.jsonl") if row["split"] == "valid"]
    return Curve(name, tuple((row["step"], row[watch]) for row in told), f"{watch} on validation")
