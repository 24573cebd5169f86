"""`heedful recipes`."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def recipes(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List what can be trained, with the score and the time to expect."""
    from heedful import recipes

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
    for name, run in found.items():
        typer.echo(f"{name:10s} {run.about}")
        if run.expected:
            score = ", ".join(f"{key} {100 * value:.2f} %" for key, value in run.expected.score.items())
            typer.echo(f"{'':10s} {score} in about {run.expected.seconds:.0f} s on {run.expected.where}")
        typer.echo(f"{'':10s} heedful train {name}    on your own files: heedful train {name} data=FILE")
