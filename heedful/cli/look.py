"""`heedful look`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.arguments import Device, Folder, warn_of


def look(
    folder: Folder,
    text: Annotated[str, typer.Argument(metavar="INPUT", help="What the model is asked, as in `heedful predict`.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to: .html (to explore), .png, .svg or .json (exact numbers).")
    ],
    layer: Annotated[
        str | None, typer.Option(metavar="PATH", help="One layer alone, such as decoder.blocks.1.cross.")
    ] = None,
    device: Device = None,
) -> None:
    """See where every layer and head looks while the model answers one input."""
    from heedful.errors import Refusal, unknown
    from heedful.looking import draw, page
    from heedful.training import run

    draw.known(out)
    model, task = run.usable(folder)
    warn_of(task, [text])
    seen = task.look(model.to(run.device(device)), text)
    paths = [map.path for map in seen.maps]
    if layer is not None and layer not in paths:
        raise unknown("layer", layer, paths)
    try:
        words = [page.Alignment("Words", (seen.words,))] if seen.words and layer is None else []
        draw.write([map for map in seen.maps if layer in (None, map.path)], out, seen.name, words)
    except OSError as error:
        raise Refusal(f"{out} cannot be written: {error.strerror}; choose another --out") from None
    typer.echo(f"{seen.name}\n{out}")
