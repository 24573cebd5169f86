"""Checkpoints of a run: weights, average, best and optimiser; the latest is the newest whose manifest holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.errors import Refusal
from heedful.safe import sealed_folders
from heedful.safe.json_and_tensors import read_json, read_tensors
from heedful.safe.opening import inside
from heedful.safe.sealed_folders import remove_folder, write_folder, write_tensors

Tensors = dict[str, Tensor]


@dataclass
class Progress:
    """How far a run has come and what it found best."""

    step: int = 0
    best_step: int = 0
    best_score: float | None = None
    since_best: int = 0  # evaluations

    def __post_init__(self) -> None:
        counts = self.step, self.best_step, self.since_best
        if not all(type(count) is int and 0 <= count < 1 << 60 for count in counts):
            raise TypeError("its steps are no whole numbers")
        if self.best_score is not None and not isinstance(self.best_score, (int, float)):
            raise TypeError("its best score is no number")


def write(folder: Path, progress: Progress, parts: dict[str, Tensors], keep: int, made: dict[str, Any]) -> Path:
    """Writes a checkpoint and what it was `made` by, and drops what need not be kept.

    Kept are the last `keep`, and the one of the best score where there is one. What claims to be newer than this one
    was passed over when the run went on, for it was not whole: that goes too.
    """

    def fill(aside: Path) -> None:
        for name, tensors in parts.items():
            write_tensors(tensors, aside / f"{name}.safetensors")
        (aside / "progress.json").write_text(json.dumps(asdict(progress)) + "\n", encoding="utf-8")
        sealed_folders.seal(aside, step=progress.step, made=made)

    place = folder / name_of(progress.step)
    write_folder(place, fill)
    tidy(folder, progress, keep)
    return place


def tidy(folder: Path, progress: Progress, keep: int) -> None:
    """Drops what need not be kept, and what was left of saves that came to no end."""
    saved = all_of(folder)
    known = [old for old in saved if step_of(old) <= progress.step]
    kept = {*known[-keep:], folder / name_of(progress.best_step)}
    for old in (*saved, *folder.glob(".*.aside")):
        if old not in kept:
            remove_folder(old)


def name_of(step: int) -> str:
    """The name of a step's checkpoint."""
    return f"step-{step:08d}"


def all_of(folder: Path) -> list[Path]:
    """The checkpoints of a run that have a manifest, in the order of the steps that it tells."""
    told = {place: step_of(place) for place in folder.glob("step-*")}
    return sorted((place for place, step in told.items() if step >= 0), key=told.__getitem__)


def step_of(place: Path) -> int:
    """The step of a checkpoint, by its manifest; -1 where that does not tell."""
    step = (sealed_folders.manifest(place) or {}).get("step")
    return step if isinstance(step, int) else -1


def latest(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that is whole, and what is wrong with others that are newer or do not tell."""
    faults: list[str] = []
    for place in sorted(folder.glob("step-*"), key=lambda place: (step_of(place) < 0, step_of(place)), reverse=True):
        fault = sealed_folders.fault(place)
        if fault is None and step_of(place) >= 0:
            return place, faults
        faults.append(f"{place} is not whole: {fault or 'it does not tell its step'}")
    return None, faults


def read_checkpoint(place: Path) -> tuple[Progress, dict[str, Tensors]]:
    """The contents of a checkpoint."""
    progress = Progress(**read_json(inside(place) / "progress.json"))
    if step_of(place) != progress.step:
        raise Refusal(f"{place / 'progress.json'} says step {progress.step}; copy or train it again")
    return progress, {path.stem: read_tensors(path) for path in sorted(place.glob("*.safetensors"))}


def mean(places: Sequence[Path]) -> Tensors:
    """The mean of the weights, or of their moving averages, that checkpoints hold."""
    total: Tensors = {}
    for place in places:
        moving = place / "average.safetensors"
        for name, tensor in read_tensors(moving if moving.is_file() else place / "model.safetensors").items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    first = read_tensors(places[0] / "model.safetensors")
    return {name: (total[name] / len(places)).to(tensor.dtype) for name, tensor in first.items()}
