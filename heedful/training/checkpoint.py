"""Checkpoints of a run: weights, average, best and optimiser, written aside and moved into place."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from torch import Tensor

from heedful.checkpoints.opening import inside
from heedful.checkpoints.store import read_json, read_tensors, remove_folder, write_folder, write_tensors
from heedful.errors import Refusal

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


def write(folder: Path, progress: Progress, parts: dict[str, Tensors], keep: int) -> Path:
    """Writes a checkpoint and drops all but the last `keep`, and what was left of one that was never finished."""

    def fill(aside: Path) -> None:
        for name, tensors in parts.items():
            write_tensors(tensors, aside / f"{name}.safetensors")
        (aside / "progress.json").write_text(json.dumps(asdict(progress)) + "\n", encoding="utf-8")

    place = folder / f"step-{progress.step:08d}"
    write_folder(place, fill)
    for old in (*all_of(folder)[:-keep], *folder.glob(".*.aside")):
        remove_folder(old)
    return place


def all_of(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    found = (path for path in folder.glob("step-*") if re.fullmatch(r"step-\d{8,}", path.name))
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def read(place: Path) -> tuple[Progress, dict[str, Tensors]]:
    """What a checkpoint holds."""
    progress = Progress(**read_json(inside(place) / "progress.json"))
    if place.name != f"step-{progress.step:08d}":
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
