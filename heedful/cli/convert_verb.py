"""`heedful convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.terminal import say


def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="A folder with a model, or hub:OWNER/NAME.")],
    folder: Annotated[Path, typer.Argument(metavar="DST", help="A new folder.")],
    to: Annotated[
        str,
        typer.Option(metavar="hf|heedful|onnx", help="The layout: Hugging Face's, our own, or ONNX graphs."),
    ],
) -> None:
    """Write a model and its tokenizer in another layout: Hugging Face's, our own, or ONNX.

    A folder that is written with --to hf can be read by transformers. A model that the layout cannot express, such as a
    GPT-2 with rotary positions, is refused, and you are told which keys to train with.
    """
    from heedful.formats import native

    kind, count = native.convert(source, folder, to)
    say(f"{folder}: {kind}, {count:,} weights")
