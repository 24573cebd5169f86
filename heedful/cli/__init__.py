"""The command line: one file a verb, each a few lines over the library. torch is imported by a verb, never here."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import typer

from heedful.cli import check, data, eval, look, predict, recipes, train
from heedful.errors import Failure, Refusal, nearest

UsageError: type[Exception] = typer.BadParameter.__mro__[
    1
]  # typer carries a click of its own and does not show this one

app = typer.Typer(
    help="Train attention models on your own files with one command, and see where they look.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("train")(train.train)
app.command("eval")(eval.evaluate)
app.command("predict")(predict.predict)
app.command("look")(look.look)
app.command("check")(check.check)
app.command("recipes")(recipes.recipes)
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def version(version: bool = typer.Option(False, "--version", help="Say which version this is.")) -> None:
    """Train attention models on your own files with one command, and see where they look."""
    if version:
        from heedful import __version__

        typer.echo(f"heedful {__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Runs the program. Status: 0, 1 for a failure, 2 for bad input, 130 for Ctrl-C."""
    warnings.showwarning = one_line
    command = typer.main.get_command(app)
    try:
        sys.exit(command.main(arguments, "heedful", standalone_mode=False) or 0)
    except UsageError as error:
        stop(usage(error, command), 2)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except (Refusal, Failure) as error:
        stop(str(error), error.status)
    except (KeyboardInterrupt, typer.Abort):
        stop("stopped", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the last flush does not complain
        sys.exit(0)


def stop(line: str, status: int) -> None:
    """Says why on one line and leaves."""
    print(f"heedful: {' '.join(line.split())}", file=sys.stderr)
    sys.exit(status)


def usage(error: Any, command: Any) -> str:
    """What was wrong with the words of a call, with the nearest known verb or option."""
    said = error.format_message().rstrip(".") or "no verb is given"
    name = error.ctx.command_path if error.ctx else "heedful"
    if said.startswith("No such command"):
        word = said.split("'")[1]
        known = sorted(getattr(error.ctx.command if error.ctx else command, "commands", {}))
        return f"unknown verb {word!r}{nearest(word, known) or ';'} known: {', '.join(known)}"
    return f"{said[0].lower()}{said[1:]}; `{name} --help` says how it is called"


def one_line(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning without the place in the code that it came from."""
    print(f"heedful: warning: {message}", file=sys.stderr)
