"""`heedful recipes`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from heedful.terminal import say


def recipes(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List what can be trained, with the score and the time to expect."""
    from heedful.metrics.metric import score_text
    from heedful.tasks import task_of
    from heedful.training.spec import recipes

    names = recipes.names()
    found = {name: recipes.resolve(name) for name in names}
    versions = {name: {word: recipes.resolve(name, [f"data={word}"]) for word in recipes.sets(name)} for name in names}
    if as_json:
        told = []
        for name, run in found.items():
            others = {word: version.model_dump()["expected"] for word, version in versions[name].items()}
            told.append({"name": name, **run.model_dump(include={"about", "task", "expected"}), "sets": others})
        say(json.dumps(told, indent=1))
        return
    wide = max(map(len, names))
    for name, run in found.items():
        say(f"{name:{wide}s} {run.about}")
        for word, version in {"": run, **versions[name]}.items():
            if version.expected:
                metrics, scores = task_of(version.task).metrics, version.expected.score.items()
                score = ", ".join(f"{key} {score_text(key, value, metrics)}" for key, value in scores)
                told_of = f"data={word}: " if word else ""
                time = f"in about {version.expected.seconds:.0f} s on {version.expected.where}"
                say(f"{'':{wide}s} {told_of}{score} {time}")
        say(f"{'':{wide}s} heedful train {name}    on your own files: heedful train {name} data=FILE")
