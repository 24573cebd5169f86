"""`heedful table`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.terminal import say


def table(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of finished runs.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the table to a file: .md, .html or .json.")
    ] = None,
) -> None:
    """Set finished runs side by side: score, training FLOPs and time."""
    from heedful.looking.draw import check_path
    from heedful.training import table as runs

    if out is not None:
        check_path(out, runs.ENDINGS)
    header, found, cells = runs.table(folders)
    say(runs.markdown(header, cells), end="")
    if out is not None:
        runs.save(out, header, found, cells)
