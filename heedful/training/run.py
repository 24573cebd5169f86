"""A run from beginning to end: data, model, warnings, the loop, the test, and what is left in the folder."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful import models
from heedful.checkpoints import store
from heedful.data.batches import Splits
from heedful.errors import Failure, Refusal, unknown
from heedful.models import Spec
from heedful.recipes import parse, put
from heedful.tasks import TASKS, Task
from heedful.training import checkpoint
from heedful.training.loop import Loop, seed_step, working_dtype
from heedful.training.record import Record
from heedful.training.report import report
from heedful.training.spec import RunSpec, read, validated

RESULT = "result.json"  # written last: a run that has it is finished


@dataclass(frozen=True)
class Ready:
    """A run that was checked and can start."""

    run: RunSpec
    task: Task
    splits: Splits[Any]
    model: nn.Module


def device(name: str | None = None) -> torch.device:
    """The device that was asked for; where none was, a GPU if there is one."""
    if name not in (None, "cpu", "cuda"):
        raise unknown("device", str(name), ("cpu", "cuda"))
    if name == "cuda" and not torch.cuda.is_available():
        raise Refusal("--device cuda was asked for and no GPU is found; leave it out or use --device cpu")
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def prepare(run: RunSpec, place: torch.device) -> Ready:
    """Opens the data and builds the model; what cannot work is refused, what is unlikely to is warned of."""
    if run.task not in TASKS:
        raise unknown("task", run.task, TASKS)
    task, splits = TASKS[run.task].open(run.data, run.seed)
    for name, split in (("train", splits.train), ("valid", splits.valid), ("test", splits.test)):
        if not len(split):
            raise Refusal(
                f"data.{name} is not given or empty; give all of data.train, data.valid and data.test, or one file"
            )
    spec = models.spec(**({"family": "transformer"} | run.model | task.numbers()))
    longest = max(
        (task.length(sample) for split in (splits.train, splits.valid, splits.test) for sample in split), default=0
    )
    if longest > spec.length:
        raise Refusal(
            f"a sample is {longest} long and the model takes {spec.length}; set model.length={longest} or shorten it"
        )
    advise(task, spec)
    seed_step(run.seed, -1, 0)
    model = models.assemble(spec)
    task.prepare(model)
    dtype = torch.float64 if run.training.dtype == "float64" else torch.float32
    run = run.model_copy(update={"model": spec.model_dump(exclude_none=True)})
    return Ready(run, task, splits, model.to(place, dtype))


def advise(task: Task, spec: Spec) -> None:
    """Warns of what can run but is unlikely to learn."""
    blind = spec.position == "none" and spec.bias == "none"
    if task.ordered and blind:
        warnings.warn(
            "model.position=none and no bias: the model cannot tell the order that this task is about", stacklevel=2
        )
    if not task.ordered and not blind:
        warnings.warn(
            "this task is about sets: with positions the order of members matters; set model.position=none",
            stacklevel=2,
        )


def train(run: RunSpec, out: Path, resume: bool, place: torch.device) -> dict[str, Any]:
    """Trains into a folder and returns the result: step, scores on the test split, where the report lies."""
    if (out / RESULT).exists():
        return finished(out, resume)
    saved = checkpoint.all_of(out / "checkpoints")
    if out.exists() and any(out.iterdir()) and not resume:
        raise Refusal(f"{out} holds an unfinished run; go on with --resume, or choose another --out")
    if resume and (out / "run.yaml").exists():
        run = same(run, validated(read(out / "run.yaml")), out)
    ready = prepare(run, place)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "run.yaml").write_text(ready.run.text(), encoding="utf-8")
    except OSError as error:
        raise Refusal(f"{out} cannot be written: {error.strerror}; choose another --out") from None
    loop = Loop(ready.run, ready.task, ready.splits, ready.model, out)
    if saved:
        loop.restore(saved[-1])
    with Record(out, run.training.steps, loop.progress.step) as record:
        record.say(introduction(ready, place, out, resume, loop.progress.step))
        began = time.monotonic()
        loop.train(record)
        return finish(loop, ready, record, time.monotonic() - began)


def finished(out: Path, resume: bool) -> dict[str, Any]:
    """What a finished run came to; without --resume it is refused, so that nothing is overwritten."""
    if not resume:
        raise Refusal(f"{out} holds a finished run; choose another --out, or remove the folder to train again")
    return store.read_json(out / RESULT)


def same(asked: RunSpec, begun: RunSpec, out: Path) -> RunSpec:
    """The run that was begun; what is asked for now must not contradict it."""
    now, then = flat(asked.model_dump(mode="json")), flat(begun.model_dump(mode="json"))
    for key, value in now.items():
        if value is not None and then.get(key) != value and not key.startswith(("about", "expected")):
            raise Refusal(
                f"{out} was begun with {key}={then.get(key)}, not {value}; leave {key} out, or choose another --out"
            )
    return begun


def flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Nested values by dotted key."""
    made: dict[str, Any] = {}
    for key, value in values.items():
        made |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {above + key: value}
    return made


def introduction(ready: Ready, place: torch.device, out: Path, resume: bool, step: int) -> str:
    """What is about to happen, in a few lines."""
    weights = sum(parameter.numel() for parameter in ready.model.parameters())
    sizes = ", ".join(f"{len(split):,}" for split in (ready.splits.train, ready.splits.valid, ready.splits.test))
    dtype = str(working_dtype(ready.run, place)).removeprefix("torch.")
    where = f"going on at step {step}" if step else "nothing saved yet, starting at step 0" if resume else "from step 0"
    lines = [
        f"{ready.run.about or ready.run.task}",
        f"model     {ready.run.model['family']}, {weights:,} weights, {dtype} on {place.type}",
        f"data      {ready.run.data.name}: {sizes} samples to train, choose by and test on",
        f"folder    {out} ({where})",
    ]
    if ready.run.expected:
        score = ", ".join(f"{name} {value:g}" for name, value in ready.run.expected.score.items())
        lines.append(f"expected  {score} in about {ready.run.expected.seconds:.0f} s on {ready.run.expected.on}")
    return "\n".join(lines)


def finish(loop: Loop, ready: Ready, record: Record, seconds: float) -> dict[str, Any]:
    """Tests the best model, writes it, the report, and last of all the result."""
    out = loop.folder
    store.restore(ready.model, loop.best, "the best weights")
    scores = ready.task.score(ready.model, ready.splits.test)
    record.scored(loop.progress.step, "test", scores)

    def fill(aside: Path) -> None:
        store.write_model(ready.model, aside)
        ready.task.write(aside)

    store.write_folder(out / "model", fill)
    report(ready.run, ready.task, ready.model, ready.splits, out, scores)
    result = {"step": loop.progress.step, "best_step": loop.progress.best_step, "scores": scores}
    aside = out / f".{RESULT}.aside"
    aside.write_text(json.dumps(result) + "\n", encoding="utf-8")
    os.replace(aside, out / RESULT)
    said = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    record.say(f"test      {said}  ({len(ready.splits.test):,} unseen, {seconds:.0f} s, step {loop.progress.step})")
    record.say(f"report    {out / 'report.html'}")
    return result


def trained(folder: Path) -> tuple[nn.Module, Task]:
    """The model and the task of a run folder, or of the `model/` in it."""
    place = store.model_folder(folder)
    state = store.read_json(place / "task.json")
    name = state.pop("task", None)
    if name not in TASKS:
        raise Refusal(f"{place / 'task.json'}: task {name!r} is not known; known: {', '.join(sorted(TASKS))}")
    try:
        return store.load(place), TASKS[name].read(place, state)
    except (KeyError, TypeError) as error:
        raise Refusal(f"{place / 'task.json'} is not whole: {error}") from None


def samples(folder: Path, task: Task, changes: Iterable[str]) -> Splits[Any]:
    """The samples that a trained model is to be scored on: those of its run, or those that changes to `data` name."""
    values: dict[str, Any] = {"task": task.name, "model": {}, "data": {}}
    for place in (folder, folder.parent):
        if (place / "run.yaml").is_file():
            values = read(place / "run.yaml")
            break
    known = bool(values["data"])
    for key, value in map(parse, changes):
        if key.split(".")[0] not in ("data", "seed"):
            raise Refusal(
                f"{key} cannot be changed in a trained model; eval takes data=..., data.test=... and seed=..."
            )
        put(values, key, value)
        known = known or key.startswith("data")
    if not known:
        raise Refusal(f"{folder} does not say what data it was trained on; name them with data=...")
    run = validated(values)
    return task.reopen(run.data, run.seed)


__all__ = ["Failure", "Ready", "device", "prepare", "train", "trained"]
