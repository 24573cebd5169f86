"""`heedful eval`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from heedful.cli.arguments import Device, Folder, Other
from heedful.errors import unknown


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
    scores = task.score(model.to(run.device(device)), samples)
    for name, value in scores.items():
        typer.echo(f"{name:20s} {value:.4f}   on {len(samples):,} samples of {split}", err=True)
    typer.echo(json.dumps({"task": task.name, "split": split, "samples": len(samples), **scores}))
