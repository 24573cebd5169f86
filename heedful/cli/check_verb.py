"""`heedful check`."""

from __future__ import annotations

import typer

from heedful.cli.arguments import Folder
from heedful.terminal import say


def check(folder: Folder) -> None:
    """Check a trained model: padding, caching, looking and saving must change nothing; status 1 if one does."""
    from heedful.formats import native
    from heedful.tasks.checks import checks

    failed = 0
    for law in checks(native.load(folder)):
        say(f"{law.said:6s} {law.name}: {law.detail}")
        failed += not law.holds
    if failed:
        raise typer.Exit(1)
