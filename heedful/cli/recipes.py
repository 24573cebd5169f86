"""`heedful recipes`."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def recipes(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List what can be trained, with the score and the time to expect."""
    from heedful import recipes
    from heedful.training.report import shown

    found = {name: recipes.resolve(name) for name in recipes.names()}
    if as_json:
        typer.echo(
            json.dumps(
                [
                    {"name": name, **run.model_dump(include={"about", "task", "expected"})}
                    for name, run in found.items()
                ],
                indent=1,
            )
        )
        return
    wide = max(map(len, found))
    for name, run in found.items():
        typer.echo(f"{name:{wide}s} {run.about}")
        if run.expected:
            score = ", ".join(f"{key} {shown(key, value)}" for key, value in run.expected.score.items())
            typer.echo(f"{'':{wide}s} {score} in about {run.expected.seconds:.0f} s on {run.expected.where}")
        typer.echo(f"{'':{wide}s} heedful train {name}    on your own files: heedful train {name} data=FILE")
