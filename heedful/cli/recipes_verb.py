"""`heedful recipes`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.terminal import say

if TYPE_CHECKING:
    from heedful.training.spec.recipes_by_goal import Version


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One recipe, to be told all about it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the recipes, grouped by what they are for, with the score and the time to expect; or tell all of one."""
    from heedful.training.spec import recipes_by_goal
    from heedful.training.spec.recipes import names

    if as_json:
        told = map(recipes_by_goal.versions, names() if name is None else [name])
        rows = [as_row(versions) for versions in told]
        say(json.dumps(rows if name is None else rows[0], indent=1))
    elif name is not None:
        tell(recipes_by_goal.versions(name))
    else:
        for goal, found in recipes_by_goal.by_goal().items():
            say(f"{goal}:")
            for own, *_ in found:
                result = f"{own.score}, {own.time}" if own.score else ""
                say(f"  {own.recipe:21s} {result:44s} {own.run.about}")
            say()
        say("heedful train NAME trains one, with data=FILE on your own data; heedful recipes NAME tells all of it.")


def as_row(versions: list[Version]) -> dict[str, object]:
    """A recipe as JSON's own types."""
    own, *others = versions
    sets = {one.data: one.run.model_dump()["expected"] for one in others}
    return {"name": own.recipe, **own.run.model_dump(include={"about", "task", "expected"}), "sets": sets}


def tell(versions: list[Version]) -> None:
    """Says all of a recipe: what it does, what to expect, how it is called, on which files, and its settings."""
    import yaml

    from heedful.tasks import task_of
    from heedful.training.spec import keys

    own = versions[0]
    task = task_of(own.run.task)
    say(f"{own.recipe}: {own.run.about}\n")
    for one in versions:
        say(one.command)
        if one.score:
            say(f"  reaches {one.score} on unseen samples in about {one.time}")
            say(f"  with seeds 2 and up: {one.spread}" if one.spread else "", end="\n" if one.spread else "")
            say(f"  note: {one.expected.note}" if one.expected.note else "", end="\n" if one.expected.note else "")
    say(f"heedful train {own.recipe} data=toy\n  trains a small version in seconds")
    if "files" in task.readers:
        say(f"heedful train {own.recipe} data=FILE\n  {keys.first_line(task.readers['files'])}")
    say(f"\nA trained model is asked with: {task.pipeline.input}.")
    say(f"`heedful keys {own.run.task}` says what each key means. Its settings:\n")
    own_settings = own.run.model_copy(update={"expected": None, "about": ""}).model_dump(exclude_defaults=True)
    say(yaml.safe_dump(own_settings, sort_keys=False, width=100), end="")
