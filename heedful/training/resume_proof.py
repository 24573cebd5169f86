"""Resuming, proved before one's eyes: a run is killed again and again, and must leave the bytes of one that was not."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch

from heedful.errors import Failure
from heedful.safe.json_and_tensors import read_tensors
from heedful.training.record import rows

PASSING = ("timing.jsonl",)  # what tells of time may differ; so may TensorBoard's events, which are made of it
INSIDE = 60  # a save, a line of the metrics and the files around them are about as many file operations


@dataclass(frozen=True)
class Cut:
    """Where a process is killed: when it comes to a step, or at a file operation after that (0: at the step)."""

    step: int
    operation: int

    def __str__(self) -> str:
        return f"at step {self.step}" + (f", at file operation {self.operation} after it" if self.operation else "")


def choose_cuts(cuts: int, steps: int, seed: int) -> list[Cut]:
    """Cuts by chance, one in each of so many equal stretches of the run: by turns at a step and inside a save."""
    dice = random.Random(seed)
    edges = [round(at * steps / cuts) for at in range(cuts + 1)]
    return [
        Cut(dice.randint(min(low + 1, high), max(1, high)), dice.randint(1, INSIDE) if at % 2 else 0)
        for at, (low, high) in enumerate(pairwise(edges))
    ]


def train_until(words: Sequence[str], out: Path, cut: Cut | None) -> bool:
    """Trains in a process of its own, which is killed at the cut; whether it came to its end."""
    before = ["heedful.cli.fault_injection", str(cut.step), str(cut.operation), str(out)] if cut else ["heedful"]
    command = [sys.executable, "-m", *before, "train", *words, "--out", str(out)]
    done = subprocess.run(
        [*command, *(["--resume"] if (out / "run.yaml").exists() else [])], capture_output=True, text=True
    )
    if done.returncode not in (0, -signal.SIGKILL):
        raise Failure(f"training stopped by itself: {(done.stderr.strip().splitlines() or ['it said nothing'])[-1]}")
    return done.returncode == 0


def verify(words: Sequence[str], folder: Path, cuts: Sequence[Cut], said: Callable[[str], object]) -> str | None:
    """Trains once whole and once with cuts, as `heedful train` does with these words; the first difference, or none."""
    whole, cut = folder / "whole", folder / "cut"
    said("trains without a cut")
    train_until(words, cut, None)
    for made in list(folder.iterdir()):  # both are trained in one place, for a run names the folders that it needs
        made.rename(folder / made.name.replace(cut.name, whole.name, 1))
    killed = 0
    for one in cuts:
        ended = train_until(words, cut, one)
        killed += not ended
        said(f"{'came to its end before it was killed' if ended else 'killed'} {one}; {where(cut)}")
        if ended:
            break
    train_until(words, cut, None)
    said(f"came to its end after {killed} kills")
    return difference(whole, cut)


def where(out: Path) -> str:
    """How far a run that was killed had come, and what it had saved."""
    saved = sorted(path.name for path in (out / "checkpoints").glob("step-*"))
    told = rows(out / "metrics.jsonl")
    return f"saved {', '.join(saved) or 'nothing'}; last told of step {told[-1]['step'] if told else 0}"


def difference(one: Path, other: Path) -> str | None:
    """The first difference of two runs: a file, and in it the line or the tensor; none where all bytes are equal."""
    names = sorted(files(one) | files(other))
    for name in names:
        mine, yours = one / name, other / name
        if not (mine.is_file() and yours.is_file()):
            return f"{name} is in {(one if mine.is_file() else other).name} alone"
        if mine.read_bytes() != yours.read_bytes():
            return f"{name} differs{inside(mine, yours)}"
    return None


def files(folder: Path) -> set[str]:
    """The files of a run whose bytes must not depend on when it was killed."""
    found = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    return {str(path) for path in found if "tensorboard" not in path.parts and path.name not in PASSING}


def inside(one: Path, other: Path) -> str:
    """Where two files differ, where that can be said."""
    if one.suffix == ".safetensors":
        mine, yours = read_tensors(one), read_tensors(other)
        names = [name for name in mine if name not in yours or not torch.equal(mine[name], yours[name])]
        return f" first in tensor {names[0]!r}" if names else ""
    if one.suffix in (".json", ".jsonl", ".yaml"):
        told = [path.read_text(encoding="utf-8").splitlines() for path in (one, other)]
        for number, (here, there) in enumerate(zip(*told, strict=False), 1):
            if here != there:
                return f" first in line {number}: {json.dumps(here[:200])} and {json.dumps(there[:200])}"
    return ""
