"""`heedful eval`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import typer

from heedful.cli.arguments import Device, Folder, Other
from heedful.errors import Failure, Refusal, unknown_word
from heedful.terminal import Bars, note, say

KEY = "model.mechanism="


@contextmanager
def answering(count: int) -> Iterator[Callable[[int], object]]:
    """A bar for so many answers, on a terminal; gives the function that moves it."""
    from rich.progress import Progress

    console = Bars()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("answering", total=count)
        yield lambda more: bar.advance(task, more)


def evaluate(
    folder: Folder,
    changes: Other = None,
    split: Annotated[str, typer.Option(metavar="train|valid|test", help="Which samples to score.")] = "test",
    device: Device = None,
) -> None:
    """Score a trained model; the last line is one JSON object.

    By default on the data that it was trained with; `data=...` names others. `model.mechanism=...` also scores it with
    another kind of attention in the place of the one that it learned with.
    """
    from heedful.training import run

    if split not in ("train", "valid", "test"):
        raise unknown_word("split", split, ("train", "valid", "test"))
    model, task = run.load_trained(folder)
    others = [change.split("=", 1)[1] for change in changes or [] if change.startswith(KEY)]
    task, samples = run.reopen_run(folder, task, [c for c in changes or [] if not c.startswith(KEY)], split)
    with answering(len(samples) * (1 + len(others[-1:]))) as tell:
        task = replace(task, tell=tell)
        scores: dict[str, Any] = task.score(model.to(run.device(device)), samples)
        for word in others[-1:]:
            scores = {**instead(model, word, task, samples), "mechanism": word, "as_trained": scores}
    for name, value in scores.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise Failure(f"the score {name} is not a number, for the model's are none; train it at a lower rate")
        if isinstance(value, float):
            was = f", {scores['as_trained'][name]:.4f} as trained" if others else ""
            note(f"{name:20s} {value:.4f}{was}   on {len(samples):,} samples of {split}")
    say(json.dumps({"task": task.name, "split": split, "samples": len(samples), **scores}))


def instead(model: Any, word: str, task: Any, samples: Any) -> dict[str, Any]:
    """The scores of a model with another mechanism in the place of its own."""
    from heedful.models import attention_kinds

    other = attention_kinds.instead(model, word).to(next(model.parameters()).device)
    try:
        scores: dict[str, Any] = task.score(other, samples)
    except Refusal:
        raise
    except ValueError as error:  # what a mechanism says at the call
        raise Refusal(f"{KEY}{word}: {error}") from None
    return scores
