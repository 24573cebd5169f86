"""Arguments that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder, or the model/ in it.")]
Changes = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="What to change, such as training.steps=500.")
]
Device = Annotated[str | None, typer.Option(metavar="cpu|cuda", help="Where to run; a GPU is used if there is one.")]
