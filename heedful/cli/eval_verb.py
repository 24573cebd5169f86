"""`heedful eval`."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.answers_told import answer_bar
from heedful.cli.arguments import Device, Folder
from heedful.errors import Failure, Refusal, unknown_word
from heedful.terminal import note, say

KEY = "model.mechanism="


NAMED = 12  # classes that are told one by one


def evaluate(
    folder: Folder,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE] [KEY=VALUE]...", help="A file to score, or other data: data.test=test.tsv."),
    ] = None,
    split: Annotated[str, typer.Option(metavar="train|valid|test", help="Which samples to score.")] = "test",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object alone, with each class and the confusion matrix.")
    ] = False,
    device: Device = None,
) -> None:
    """Score a trained model; the last line is one JSON object.

    It is scored on what was held out of the data that it was trained with; `data=...` names other data. All of a FILE
    is scored, or of a folder of classes. `model.mechanism=...` also scores it with another kind of attention.
    """
    from heedful.training import run

    if split not in ("train", "valid", "test"):
        raise unknown_word("split", split, ("train", "valid", "test"))
    file, keys = file_and_changes(changes or [])
    model, task = run.load_trained(folder)
    others = [change.split("=", 1)[1] for change in keys if change.startswith(KEY)]
    kept = [change for change in keys if not change.startswith(KEY)]
    task, samples = run.reopen_run(folder, task, kept, split, file)
    with answer_bar(len(samples) * (1 + len(others[-1:]))) as heard:
        task = replace(task, tell=heard)
        scores, details = measure(task, model.to(run.device(device)), samples)
        for word in others[-1:]:
            other, details = instead(model, word, task, samples)
            scores = {**other, "mechanism": word, "as_trained": scores}
    of = {"file": str(file)} if file else {"split": split}
    if not as_json:
        tell(scores, f"on {len(samples):,} samples of {file or split}", details)
    told = {"task": task.name, **of, "samples": len(samples), **scores}
    say(json.dumps(told | (details if as_json else {}), ensure_ascii=False))


def file_and_changes(words: list[str]) -> tuple[Path | None, list[str]]:
    """The file to score, where one is named, and the changes to the run."""
    files = [word for word in words if "=" not in word or os.path.exists(word)]
    for word in files[1:]:
        raise Refusal(f"{files[0]} and {word} are two files; score one at a time")
    for word in files:
        if not os.path.exists(word):
            raise Refusal(f"{word!r} does not exist and is no change; name a file to score, or write key=value")
    return Path(files[0]) if files else None, [word for word in words if word not in files]


def measure(task: Any, model: Any, samples: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The scores of a model, and what stands behind them; scores that are no numbers are a failure."""
    from heedful.metrics import metric

    found = task.measure(model, samples)
    scores = metric.scores(found)
    for name, value in scores.items():
        if not math.isfinite(value):
            raise Failure(
                f"the score {name} is not a number, because the model's outputs are not; train it at a lower rate"
            )
    return scores, metric.details(found)


def tell(scores: dict[str, Any], where: str, details: dict[str, Any]) -> None:
    """Says the scores, beside those as trained where there are such, and the figures of the hardest classes."""
    as_trained = scores.get("as_trained")
    for name, value in scores.items():
        if isinstance(value, float):
            was = f", {as_trained[name]:.4f} as trained" if as_trained else ""
            note(f"{name:20s} {value:.4f}{was}   {where}")
    classes = sorted(details.get("classes", {}).items(), key=lambda one: one[1]["f1"])
    for label, one in classes[:NAMED]:
        figures = f"precision {one['precision']:.4f}  recall {one['recall']:.4f}  f1 {one['f1']:.4f}"
        note(f"  {label:18s} {figures}  of {one['count']:,}")
    if len(classes) > NAMED:
        note(f"  and {len(classes) - NAMED:,} classes with a higher f1; --json has all of them")


def instead(model: Any, word: str, task: Any, samples: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The scores of a model with another mechanism in the place of its own, and what stands behind them."""
    from heedful.models import attention_kinds

    other = attention_kinds.instead(model, word).to(next(model.parameters()).device)
    try:
        return measure(task, other, samples)
    except Refusal:
        raise
    except ValueError as error:  # what a mechanism says at the call
        raise Refusal(f"{KEY}{word}: {error}") from None
