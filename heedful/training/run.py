"""A run from beginning to end: data, model, warnings, the loop, the test, and what is left in the folder."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.data.readers.reader import MEMORY
from heedful.errors import Failure, Refusal
from heedful.formats.weights import restore
from heedful.metrics import metric
from heedful.metrics.metric import Metric
from heedful.safe.sealed_folders import manifest, replace_file
from heedful.training import checkpoint
from heedful.training.async_save import what_changed
from heedful.training.banner import introduction
from heedful.training.callbacks import LOGGERS, Callback, Logger
from heedful.training.cost import operations
from heedful.training.data_checksum import sum_of
from heedful.training.devices import device, name_of
from heedful.training.distributed.ranks import ONE, Ranks
from heedful.training.distributed.sharding import check
from heedful.training.loop import Loop
from heedful.training.model_card import model_card
from heedful.training.prepare import NOTHING, Given, Ready, doubt, prepare
from heedful.training.record import Quiet, Record
from heedful.training.record import result as came_to
from heedful.training.report import report
from heedful.training.run_folder import RESULT, SPEC, clear, holding, is_begun, is_finished, make_folder, same
from heedful.training.spec.run_spec import RunSpec
from heedful.training.trained_run import leave, load_trained, reopen_run, usable


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
    for name in run.training.loggers:
        LOGGERS.named(name).check()
    if run.training.threads:
        torch.set_num_threads(run.training.threads)
    foreseeable = not begun and given.model is None and given.task is None
    whole = train_stages(run, out, place, ranks, foreseeable) if run.stages else run
    ready = prepare(whole, place, out if begun else None, given)
    ready = ready if begun else settle(ready, out, ranks)
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
    from heedful.training import pretraining_stages as stages

    if foreseeable:
        stages.foresee(run, out, place)
    return stages.settle(run, out, lambda spec, to: train_beside(spec, to, place, ranks))


def settle(ready: Ready, out: Path, ranks: Ranks) -> Ready:
    """A run whose model can be written as is asked for, and of which nothing is left to be tried."""
    if ready.run.export:
        from heedful.training.export import check_export

        check_export(ready.run, ready.task.inference_model(ready.model))
    if not ready.run.training.tried and ready.run.training.minutes is None:
        return ready
    from heedful.training.trials import settle_by_trial

    return settle_by_trial(ready, out, ranks.size)


def train_ready(
    ready: Ready, out: Path, resume: bool, place: torch.device, ranks: Ranks, callbacks: Sequence[Callback]
) -> dict[str, Any]:
    """Trains what is ready in its folder, from where it stands, and tells the callbacks."""
    loop = Loop(ready.run, ready.task, ready.splits, ready.model, out, ranks)
    loop.saver.made["samples"] = sum_of(ready.splits)
    go_on(loop)
    callbacks = [*loggers_of(ready.run, out, loop.progress.step, ranks), *callbacks]
    kind = Record if ranks.first else Quiet
    with kind(out, ready.run.training.steps, loop.progress.step, name_of(place), callbacks) as record:
        record.say(introduction(ready, loop, resume))
        for callback in callbacks:
            begin_callback(callback, ready.run)
        result = learn(loop, ready, record)
        for callback in callbacks:
            callback.on_end(result)
        return result


def begin_callback(callback: Callback, run: RunSpec) -> None:
    """Tells a callback the spec; the service of a logger that cannot be begun with is a failure of one line."""
    try:
        callback.on_begin(run.model_dump(mode="json"))
    except (Failure, Refusal):
        raise
    except Exception as error:
        if isinstance(callback, Logger):
            raise callback.failed(error) from error
        raise


def loggers_of(run: RunSpec, out: Path, step: int, ranks: Ranks) -> list[Callback]:
    """The loggers that a run names, each made for its folder; of many processes the first one logs."""
    return [LOGGERS.named(name)(out, step) for name in run.training.loggers] if ranks.first else []


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
    measured = measure_test(ready, record)
    scores = metric.scores(measured)
    record.scored(loop.progress.step, "test", scores)
    leave(ready.model, ready.task, out / "model", model_card(ready, scores, loop.progress))
    others = {word: came_to(out / word)["scores"] for word in ready.run.compare}
    with record.working("the report is written"):
        report(ready, out, scores)
        counted = operations(loop)
    weights = sum(parameter.numel() for parameter in ready.model.parameters())
    result = {"step": loop.progress.step, "best_step": loop.progress.best_step, "scores": scores}
    result |= {"weights": weights, "operations": counted} | ({"compared": others} if others else {})
    result |= metric.details(measured)
    if ready.overlaps:
        result["near_duplicates"] = {f"{one.split} {one.part}": one.share for one in ready.overlaps}
    exported = write_exports(ready.run, out) if ready.run.export else []
    replace_file(out / RESULT, json.dumps(result) + "\n")
    said = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    record.say(f"test      {said}  ({len(ready.splits.test):,} unseen, {seconds:.0f} s, {steps_of(loop)})")
    record.say("\n".join(f"{name:9} {path}" for name, path in [("report", out / "report.html"), *exported]))
    return result


def measure_test(ready: Ready, record: Record) -> list[Metric[Any]]:
    """The metrics of a trained model on the test split."""
    with record.working("testing", len(ready.splits.test)) as tell:
        return replace(ready.task, tell=tell).measure(ready.model, ready.splits.test)


def steps_of(loop: Loop) -> str:
    """How many steps were taken, and after which the model was best."""
    step, best = loop.progress.step, loop.progress.best_step
    return f"step {step}" if best == step else f"step {step}, the best was {best}"


def write_exports(run: RunSpec, out: Path) -> list[tuple[str, Path]]:
    """Writes the trained model in each layout that was asked for; gives these and their folders."""
    from heedful.formats import native

    for layout in run.export:
        if not (out / layout).exists():  # else it was killed behind it
            native.convert(out / "model", out / layout, layout)
    return [(layout, out / layout) for layout in run.export]


__all__ = ["Failure", "Ready", "device", "load_trained", "prepare", "reopen_run", "train", "usable"]
