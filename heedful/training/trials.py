"""Trials before the first step: how many steps fit into so many minutes, the learning rate range test, the batch.

They are made on a copy of the model, and what comes out of them is written into the run's spec as if it had been asked
for. So a run that goes on takes the steps that it would have taken, whatever the clock says then.
"""

from __future__ import annotations

import json
import math
import time
from copy import deepcopy
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import torch

from heedful.data.collate import pick
from heedful.errors import Refusal
from heedful.looking.page import Curve, Curves
from heedful.safe.json_and_tensors import read_json
from heedful.safe.sealed_folders import replace_file
from heedful.terminal import duration, note, progress
from heedful.training.prepare import Ready
from heedful.training.spec.run_spec import RunSpec
from heedful.training.training_step import Stepper

SEARCH = "rate_search.json"
LOWEST, HIGHEST, RATES = 1e-6, 1.0, 100  # of a range test, each rate so many times the one before
SMOOTH = 0.8  # how much of the mean loss so far is kept in a range test
WORSE = 2.0  # times the lowest loss, where a range test ends
SHARE = 0.03  # of the minutes that are given to trying how long a step takes
TRIED, FEWEST = 40, 3  # steps that are timed at most, and at least
SCORED = 64  # samples that are answered to tell how long a score takes
SCORING = 0.25  # of the minutes that scores may take
ROOM = 0.9  # of the memory that is free which a batch may take


def settle_by_trial(ready: Ready, folder: Path, processes: int) -> Ready:
    """The run with what its spec leaves to be tried: the batch first, then the rate, and the steps that fit last."""
    training = ready.run.training
    timed = ["minutes"] if training.minutes is not None else []
    if processes > 1:
        what = ", ".join(f"training.{name}" for name in (*training.tried, *timed))
        raise Refusal(f"{what} is tried by one process, and there are {processes}; give what one of them found")
    for name, trial in (("batch", largest_batch), ("rate", highest_rate), ("minutes", fitting_steps)):
        if name in (*training.tried, *timed):
            found, said = trial(ready, folder)
            ready = replace(ready, run=with_training(ready.run, found))
            note(f"heedful: {said}")
    return ready


def with_training(run: RunSpec, found: dict[str, Any]) -> RunSpec:
    """A run, with some keys of its training as they were found."""
    return run.model_copy(update={"training": run.training.model_copy(update=found)})


def stepper(ready: Ready, folder: Path) -> Stepper:
    """The steps of a run on a copy of its model, each as far as its rate says, without a warm-up."""
    run = with_training(ready.run, {"warmup": 0, "schedule": "constant", "profile": False})
    return Stepper(run, ready.task, ready.splits, deepcopy(ready.model), folder)


# ---------------------------------------------------------------------- minutes


def fitting_steps(ready: Ready, folder: Path) -> tuple[dict[str, Any], str]:
    """As many steps as fit into the minutes, their scores counted; the warm-up is shortened with them."""
    training, whole = ready.run.training, 60.0 * float(ready.run.training.minutes or 0)
    one, score = time_step(stepper(ready, folder), SHARE * whole), time_score(ready)
    every = training.evaluate_every
    if score / every > SCORING * one / (1 - SCORING):  # a score costs more than its share of the time
        steps = max(1, int((1 - SCORING) * whole / one))
        every = max(every, min(steps, math.ceil(steps * score / (SCORING * whole))))
    steps = max(1, int(whole / (one + score / every)))
    warmup = min(training.warmup, math.ceil(training.warmup * steps / training.steps))
    rarely = "" if every == training.evaluate_every else f", scored every {every:,} steps since a score takes as long"
    said = f"{steps:,} steps of {1000 * one:.0f} ms fit into {duration(whole)}{rarely}"
    return {"steps": steps, "warmup": warmup, "evaluate_every": every}, said


def time_step(steps: Stepper, most: float) -> float:
    """The seconds of a step, of some that lie all over the first epoch."""
    places = [at * steps.portions.plan.steps // TRIED for at in range(TRIED)]
    with progress("steps are timed"):
        steps.step(steps.portions.at(places[0]))  # the first one makes what the others use
        wait_for(steps)
        began = time.monotonic()
        for done in count(1):
            steps.step(steps.portions.at(places[done % TRIED]))
            wait_for(steps)
            spent = time.monotonic() - began
            if done >= TRIED or (done >= FEWEST and spent > most):
                return spent / done
    raise AssertionError


def wait_for(steps: Stepper) -> None:
    """Waits until a step is done, where a GPU does it."""
    if steps.device.type == "cuda":
        torch.cuda.synchronize()


def time_score(ready: Ready) -> float:
    """The seconds of a score on validation data, by a few of them. A fresh model may write more than one that knows."""
    some = pick(ready.splits.valid, SCORED)
    began = time.monotonic()
    with progress("a score is timed"):
        ready.task.score(ready.model, some)
    ready.model.train()
    return (time.monotonic() - began) * len(ready.splits.valid) / len(some)


# ---------------------------------------------------------------------- rate


def highest_rate(ready: Ready, folder: Path) -> tuple[dict[str, Any], str]:
    """Learning rate range test (Smith, 2017): the rate at which the loss falls fastest while it rises step by step."""
    steps = stepper(ready, folder)
    found, mean, lowest = [], None, math.inf
    with progress("rates are tried", RATES) as heard:
        for at in range(RATES):
            rate = LOWEST * (HIGHEST / LOWEST) ** (at / (RATES - 1))
            steps.training = steps.training.model_copy(update={"rate": rate})
            loss = float(steps.step(steps.portions.at(at)))
            steps.progress.step += 1
            mean = loss if mean is None else SMOOTH * mean + (1 - SMOOTH) * loss
            heard(1)
            if not math.isfinite(mean) or (mean > WORSE * abs(lowest) + (lowest < math.inf) * 1e-9 and at > RATES // 4):
                break
            found.append((rate, mean))
            lowest = min(lowest, mean)
    rate = chosen_rate(found)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / SEARCH, json.dumps({"rate": rate, "tried": found}) + "\n")
    return {"rate": rate}, f"training.rate={rate:g}, by {len(found)} steps whose rates rise"


def chosen_rate(found: list[tuple[float, float]]) -> float:
    """The rate at which the loss falls fastest for each time that the rate is as many times higher."""
    if len(found) < 10:
        raise Refusal("training.rate=find saw no loss that falls; give a rate, such as training.rate=0.001")
    low = min(range(len(found)), key=lambda at: found[at][1])
    falls = [(found[at + 2][1] - found[at - 2][1], at) for at in range(2, max(3, min(low + 1, len(found) - 2)))]
    return float(f"{found[min(falls)[1]][0]:.2g}")


def rate_curve(folder: Path) -> list[Curves]:
    """The curve of a range test for the report, where one was made."""
    if not (folder / SEARCH).is_file():
        return []
    tried = read_json(folder / SEARCH)
    points = tuple((math.log10(rate), loss) for rate, loss in tried["tried"])
    named = f"loss while the rate rises; {tried['rate']:g} was taken, where it falls fastest"
    return [Curves("How high a rate", (Curve(named, points, "loss", along="learning rate, its logarithm to base 10"),))]


# ---------------------------------------------------------------------- batch


def largest_batch(ready: Ready, folder: Path) -> tuple[dict[str, Any], str]:
    """The largest batch, a power of two, whose widest step fits the memory that is free, as `plan` counts it."""
    device = next(ready.model.parameters()).device
    free = free_memory(device)
    most = max(1, min(len(ready.splits.train), 1 << 16))
    batch, peak = 0, 0
    with progress("batches are tried"):
        for power in range(most.bit_length()):
            need = peak_of(ready, 1 << power)
            if need > ROOM * free:
                break
            batch, peak = 1 << power, need
    if not batch:
        raise Refusal(f"training.batch=auto: a batch of one sample takes more than {gigabytes(free)}; make it smaller")
    return {"batch": batch}, f"training.batch={batch:,}, of which a step takes {gigabytes(peak)} of {gigabytes(free)}"


def peak_of(ready: Ready, batch: int) -> int:
    """The bytes that are there at once in the widest step of such a batch."""
    from heedful.training.memory_estimate import imagine_processes, measure_need

    how = {"batch": batch, "parallel": "none", "compile": False, "graphs": False, "profile": False}
    run = with_training(ready.run, how)
    with imagine_processes(1):
        return measure_need(run, ready.task, ready.splits, ready.model.spec, 1).peak  # type: ignore[arg-type]


def free_memory(device: torch.device) -> int:
    """The bytes of memory that are free where a model is."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    told = dict(line.split(":") for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    return int(told["MemAvailable"].split()[0]) << 10


def gigabytes(size: int) -> str:
    """A number of bytes in gigabytes."""
    return f"{size / (1 << 30):.2g} GB"
