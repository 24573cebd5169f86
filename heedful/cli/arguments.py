"""Arguments that several verbs share."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from heedful.terminal import note

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A run folder, its model/, or a folder in Hugging Face's layout.")
]
Changes = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Keys to change, such as training.steps=500.")
]
Device = Annotated[
    str | None,
    typer.Option(metavar="cpu|cuda|cuda:N|mps", help="Where to run; a GPU of CUDA is used if there is one."),
]


def warn_of(task: Any, inputs: list[str]) -> None:
    """Says of inputs that may be answered badly why; of many, of the first."""
    doubts = list(islice(filter(None, map(task.warning, inputs)), 2))
    for doubt in doubts[:1]:
        note(f"heedful: warning: {doubt}{', and more inputs do' if len(doubts) > 1 else ''}")


class Verb(TyperCommand):
    """A verb whose help ends with its examples; they are imported where that is shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Shows the help."""
        from heedful.cli.examples import epilog

        self.epilog = epilog(ctx.command_path.partition(" ")[2])
        super().format_help(ctx, formatter)


class Asking(Verb):
    """A verb whose inputs may be numbers: what begins like a negative one is an input, not an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the options first and the inputs behind a `--`, where one of these is a negative number."""
        if not any(map(is_negative, args)):
            return super().parse_args(ctx, args)
        valued = {name for option in self.params if not getattr(option, "is_flag", False) for name in option.opts}
        options: list[str] = []
        words: list[str] = []
        rest = iter(args)
        for word in rest:
            if word == "--":
                words += rest
            elif word.startswith("-") and not is_negative(word):
                options += [word, *islice(rest, word in valued)]
            else:
                words.append(word)
        lacking = bool(options) and options[-1] in valued
        return super().parse_args(ctx, options if lacking else [*options, "--", *words])


def is_negative(word: str) -> bool:
    """Whether a word begins like a negative number."""
    return re.match(r"-\.?\d", word) is not None


def is_text(word: str) -> bool:
    """Whether a word is text; bytes that are none reach Python as half characters."""
    return word.isascii() or not re.search("[\ud800-\udfff]", word)
