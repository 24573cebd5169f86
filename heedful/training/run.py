"""A run from beginning to end: data, model, warnings, the loop, the test, and what is left in the folder."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from heedful.data.readers.reader import MEMORY
from heedful.errors import Failure, Refusal, unknown_word
from heedful.formats.weights import restore
from heedful.metrics import metric
from heedful.safe.sealed_folders import manifest, replace_file
from heedful.training import checkpoint
from heedful.training.async_save import what_changed
from heedful.training.banner import introduction
from heedful.training.cost import operations
from heedful.training.data_checksum import sum_of
from heedful.training.distributed.check_layout import check
from heedful.training.distributed.ranks import ONE, Ranks
from heedful.training.lock import clear, holding
from heedful.training.loop import Loop
from heedful.training.prepare import NOTHING, Given, Ready, doubt, prepare
from heedful.training.record import Quiet, Record
from heedful.training.record import result as came_to
from heedful.training.report import report
from heedful.training.run_folder import RESULT, SPEC, is_begun, is_finished, make_folder, same
from heedful.training.spec.run_spec import RunSpec
from heedful.training.trained_run import leave, load_trained, reopen_run, usable

if TYPE_CHECKING:
    from heedful.training.callbacks import Callback


def device(name: str | None = None) -> torch.device:
    """The device that was asked for; where none was, a GPU if there is one."""
    if name not in (None, "cpu", "cuda"):
        raise unknown_word("device", str(name), ("cpu", "cuda"))
    if name == "cuda" and not torch.cuda.is_available():
        raise Refusal("--device cuda was asked for and no GPU is found; leave it out or use --device cpu")
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def name_of(place: torch.device) -> str:
    """What a device is called."""
    if place.type == "cuda":
        return torch.cuda.get_device_name(place)
    return f"CPU, {torch.get_num_threads()} threads"


def train(
    run: RunSpec,
    out: Path,
    resume: bool,
    place: torch.device,
    asked: Collection[str] | None = None,
    ranks: Ranks = ONE,
    given: Given = NOTHING,
) -> dict[str, Any]:
    """Trains into a folder and returns the result: step and scores on the test split.

    A run that goes on must be asked for as it was begun: in the keys `asked`, or in all where none are given. Of many
    processes the first one writes, prints, scores and finishes, and the others return nothing.
    """
    done = is_finished(out, resume)
    begun = done or is_begun(out, resume)
    if begun:
        from heedful.training.spec.older_runs import begun_spec

        held = {"data": run.data} if run.data.name == MEMORY else {}
        run = same(run, begun_spec(out / SPEC), out, asked).model_copy(update=held)
    if done:
        clear(out)
        return came_to(out)
    if run.training.threads:
        torch.set_num_threads(run.training.threads)
    foreseeable = not begun and given.model is None and given.task is None
    whole = train_stages(run, out, place, ranks, foreseeable) if run.stages else run
    ready = prepare(whole, place, out if begun else None, given)
    check(ready.model, run)
    ranks.wait()  # until all have looked into the folder
    if ranks.first:
        data = ready.run.data.with_tokens_of(run.data.tokens_of)
        words = {"start": run.start, "teacher": run.teacher, "data": data}  # as given: recipes and not their folders
        make_folder(out, ready.run.model_copy(update=words))
    with holding(out) if ranks.first else contextlib.nullcontext():
        for word in ready.run.compare:
            from heedful.training.ablation import vary

            train(vary(ready, word), out / word, (out / word).exists(), place, None, ranks)
        return train_ready(ready, out, resume, place, ranks, given.callbacks)


def train_stages(run: RunSpec, out: Path, place: torch.device, ranks: Ranks, foreseeable: bool) -> RunSpec:
    """The run once what it begins with, such as a teacher, is trained beside it."""
    from heedful.training.pretraining_stages import foresee, settle

    if foreseeable:
        foresee(run, out, place)
    return settle(run, out, lambda spec, to: train_beside(spec, to, place, ranks))


def train_ready(
    ready: Ready, out: Path, resume: bool, place: torch.device, ranks: Ranks, callbacks: Sequence[Callback]
) -> dict[str, Any]:
    """Trains what is ready in its folder, from where it stands, and tells the callbacks."""
    loop = Loop(ready.run, ready.task, ready.splits, ready.model, out, ranks)
    loop.saver.made["samples"] = sum_of(ready.splits)
    go_on(loop)
    kind = Record if ranks.first else Quiet
    with kind(out, ready.run.training.steps, loop.progress.step, name_of(place), callbacks) as record:
        record.say(introduction(ready, loop, resume))
        for callback in callbacks:
            callback.on_begin(ready.run.model_dump(mode="json"))
        result = learn(loop, ready, record)
        for callback in callbacks:
            callback.on_end(result)
        return result


def train_beside(run: RunSpec, out: Path, place: torch.device, ranks: Ranks) -> None:
    """Trains what another run needs, or goes on with it; where it is there, it must be what is needed."""
    from heedful.training.spec.older_runs import begun_spec

    if (out / RESULT).exists():
        same(run, begun_spec(out / SPEC), out, None)
    else:
        train(run, out, (out / SPEC).exists(), place, None, ranks)


def learn(loop: Loop, ready: Ready, record: Record) -> dict[str, Any]:
    """Trains to the end; then the first process finishes."""
    began = time.monotonic()
    loop.train(record)
    if loop.stages.watch:
        from heedful.training.profile import profile_lines

        record.say(profile_lines(loop, loop.stages.watch))
    with loop.layout.whole() as model:
        loop.model = model
        seconds = time.monotonic() - began
        return finish(loop, replace(ready, model=model), record, seconds) if loop.ranks.first else {}


def go_on(loop: Loop) -> None:
    """Goes back to the latest checkpoint that is whole; says where a newer one is not, and where bits may differ."""
    place, faults = checkpoint.latest(loop.saver.folder)
    if place is None and faults:
        raise Refusal(f"{faults[0]}, and there is no other; remove {loop.saver.folder} to begin at step 0")
    if place is None:
        return
    try:
        loop.restore(place)
    except (KeyError, TypeError, ValueError) as error:
        raise Refusal(f"{place} is not of this run: {error}; remove it to go on from what was saved before") from None
    for fault in faults:
        doubt(f"{fault}; going on from {place.name}")
    told = what_changed((manifest(place) or {}).get("made", {}), loop.saver.made)
    if told:
        doubt(f"{place} was made with {told}: the run goes on, but perhaps not to the same bits")
    if loop.ranks.told(lambda: loop.progress.step) != loop.progress.step:
        raise Refusal(
            f"{loop.folder} is another folder to rank {loop.ranks.rank} than to rank 0; name one that all share"
        )


def finish(loop: Loop, ready: Ready, record: Record, seconds: float) -> dict[str, Any]:
    """Tests the best model, writes it, the report, and last of all the result."""
    out = loop.folder
    checkpoint.tidy(loop.saver.folder, loop.progress, loop.saver.keep)  # where it was killed between save and tidying
    restore(ready.model, loop.best, "the best weights")
    loop.try_mean(record)
    if ready.run.training.lora is not None:
        from heedful.training.adapt.freeze_and_lora import merge

        merge(ready.model)
    task = ready.task.calibrated(ready.model, ready.splits)
    ready = replace(ready, task=task, model=task.inference_model(ready.model))
    measured = ready.task.measure(ready.model, ready.splits.test)
    scores = metric.scores(measured)
    record.scored(loop.progress.step, "test", scores)
    leave(ready.model, ready.task, out / "model")
    others = {word: came_to(out / word)["scores"] for word in ready.run.compare}
    report(ready, out, scores)
    weights = sum(parameter.numel() for parameter in ready.model.parameters())
    result = {"step": loop.progress.step, "best_step": loop.progress.best_step, "scores": scores}
    result |= {"weights": weights, "operations": operations(loop)} | ({"compared": others} if others else {})
    result |= metric.details(measured)
    if ready.overlaps:
        result["near_duplicates"] = {f"{one.split} {one.part}": one.share for one in ready.overlaps}
    replace_file(out / RESULT, json.dumps(result) + "\n")
    said = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    step, best = loop.progress.step, loop.progress.best_step
    steps = f"step {step}" if best == step else f"step {step}, the best was {best}"
    record.say(f"test      {said}  ({len(ready.splits.test):,} unseen, {seconds:.0f} s, {steps})")
    record.say(f"report    {out / 'report.html'}")
    return result


__all__ = ["Failure", "Ready", "device", "load_trained", "prepare", "reopen_run", "train", "usable"]
