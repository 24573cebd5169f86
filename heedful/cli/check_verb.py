"""`heedful check`."""

from __future__ import annotations

import typer

from heedful.cli.arguments import Folder
from heedful.terminal import say


def check(folder: Folder) -> None:
    """Prove the laws on a trained model: a line each, status 1 if one fails."""
    from heedful.formats import native
    from heedful.tasks.checks import checks

    failed = 0
    for law in checks(native.load(folder)):
        say(f"{law.said:6s} {law.name}: {law.detail}")
        failed += not law.holds
    if failed:
        raise typer.Exit(1)
