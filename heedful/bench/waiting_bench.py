"""Training: how long a step waits for its data, when batches are made ahead and when they are made in between."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from heedful.bench.measure import Case
from heedful.data.public import download
from heedful.errors import Refusal
from heedful.training.loop import Loop
from heedful.training.microbatches import Ahead, Portion
from heedful.training.prepare import prepare
from heedful.training.run import device
from heedful.training.spec import recipes

BASE, AHEAD, BETWEEN = "a step with all its data", "waiting, batches made ahead", "waiting, batches made in between"
IMAGES = 2000
SECONDS = 4.0  # of a round


def cases(rounds: int, said: Callable[[], object]) -> Iterator[tuple[Case, str]]:
    """The time a batch is waited for, as a share of the time of a step; it should be less than 0.02."""
    for learning in (translating, seeing):
        with tempfile.TemporaryDirectory() as folder:
            yield case(*learning(Path(folder)), rounds, said), BASE


def case(name: str, loop: Loop, rounds: int, said: Callable[[], object]) -> Case:
    """How long the steps of one run wait."""
    learn(loop, loop.portions.at)  # caches, kernels and CUDA graphs are made
    seconds: dict[str, list[float]] = {BASE: [], AHEAD: [], BETWEEN: []}
    for _ in range(rounds):
        with Ahead(loop.portions.at, loop.progress.step, 2**62) as ahead:
            ahead.take()
            whole, waited = learn(loop, lambda step: ahead.take())
        seconds[BASE].append(whole)
        seconds[AHEAD].append(waited)
        said()
        seconds[BETWEEN].append(learn(loop, loop.portions.at)[1])
        said()
    return Case(f"waiting, {name}, on {loop.device.type}, a batch", "batches", 1, seconds)


def translating(folder: Path) -> tuple[str, Loop]:
    """The recipe of Multi30k, ready to learn; where that set is not here, its small stand-in, and it is called so."""
    try:
        download.home("multi30k")
        name, changes = "Multi30k", []
    except Refusal:
        name, changes = "invented sentences for want of Multi30k", ["data=toy"]
    return name, loop_of("translate-multi30k", changes, folder)


def seeing(folder: Path) -> tuple[str, Loop]:
    """The recipe of images, ready to learn from a folder of JPEG files that is made here."""
    dice = np.random.default_rng(1)
    for at in range(IMAGES):
        place = folder / "images" / f"class {at % 10}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(dice.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(place / f"{at}.jpg")
    return f"a folder of {IMAGES:,} images", loop_of("vit", [f"data={folder / 'images'}"], folder)


def loop_of(recipe: str, changes: list[str], folder: Path) -> Loop:
    """A recipe, ready to learn."""
    ready = prepare(recipes.resolve(recipe, changes), device())
    return Loop(ready.run, ready.task, ready.splits, ready.model, folder)


def learn(loop: Loop, take: Callable[[int], Portion]) -> tuple[float, float]:
    """Learns for a few seconds; the seconds of a step, data included, and those in which it waited for them."""
    began, waited, steps = time.perf_counter(), 0.0, 0
    while not steps or time.perf_counter() - began < SECONDS:
        asked = time.perf_counter()
        portion = take(loop.progress.step)
        waited += time.perf_counter() - asked
        loop.step(portion)
        loop.progress.step, steps = loop.progress.step + 1, steps + 1
    if loop.device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps, waited / steps
