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
    """Write a model, and the tokenizer that it has, in another layout.

    For instance `heedful convert runs/mine gpt2-of-mine --to hf`, which transformers then reads, or
    `heedful convert ~/models/TinyLlama tinyllama --to heedful`. What a layout has no word for, such as rotary positions
    of a GPT-2, is refused, with the words to train with.
    """
    from heedful.formats import native

    kind, count = native.convert(source, folder, to)
    say(f"{folder}: {kind}, {count:,} weights")
