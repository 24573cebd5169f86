"""`heedful eval`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from heedful.cli.arguments import Device, Folder, Other
from heedful.errors import unknown


@contextmanager
def answering(count: int) -> Iterator[Callable[[int], object]]:
    """A bar for so many answers, on a terminal; gives the function that moves it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
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

    By default on the data that it was trained with; `data=...` names others.
    """
    from heedful.training import run

    if split not in ("train", "valid", "test"):
        raise unknown("split", split, ("train", "valid", "test"))
    model, task = run.trained(folder)
    samples = run.samples(folder, task, changes or [], split)
    with answering(len(samples)) as task.tell:
        scores = task.score(model.to(run.device(device)), samples)
    for name, value in scores.items():
        typer.echo(f"{name:20s} {value:.4f}   on {len(samples):,} samples of {split}", err=True)
    typer.echo(json.dumps({"task": task.name, "split": split, "samples": len(samples), **scores}))
