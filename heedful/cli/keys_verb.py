"""`heedful keys`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from heedful.errors import Refusal, unknown_word
from heedful.terminal import say


def keys(
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="A task or a recipe; without it, tasks are listed.")
    ] = None,
    word: Annotated[
        str | None, typer.Argument(metavar="[WORD]", help="Only keys with this word in their name or meaning.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List every key that can be set for a task, with its type, default and meaning.

    A key stands in a recipe, or is set as KEY=VALUE behind `heedful train`.
    """
    from heedful.tasks import TASKS
    from heedful.training.spec import keys as reference
    from heedful.training.spec import recipes

    known = {**{name: recipes.values(name)["task"] for name in recipes.names()}, **{name: name for name in TASKS}}
    if task is None:
        say("\n".join(TASKS))
        return
    if task not in known:
        raise unknown_word("task or recipe", task, known)
    found = reference.keys_of_task(known[task])
    if word is not None and not (found := reference.matching(found, word)):
        raise Refusal(f"no key of {task} has {word!r} in its name or meaning; leave it out to see all of them")
    if as_json:
        say(json.dumps([group.to_json() for group in found], indent=1))
        return
    for group in found:
        say(f"{group.title}: {group.about}" if group.names else group.about)
        columns = [max(len(key[at]) for key in group.keys) for at in range(3)]
        for key in group.keys:
            cells = "  ".join(cell.ljust(wide) for cell, wide in zip(key, columns, strict=False))
            say(f"  {cells}  {key.meaning}")
        say()
