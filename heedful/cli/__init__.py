"""The command line: one file a verb, each a few lines over the library. torch is imported by a verb, never here."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from heedful import terminal
from heedful.cli.arguments import Asking, Verb, is_text
from heedful.errors import RECODED, Failure, Refusal, nearest, short_of_memory
from heedful.interrupts import stopping
from heedful.terminal import note, say

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # typer does not show this one of its own click
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # what a disk may lack, whatever was asked for

VERBS = {
    "train": "train_verb:train",
    "sweep": "sweep_verb:sweep",
    "eval": "eval_verb:evaluate",
    "predict": "predict_verb:predict",
    "look": "look_verb:look",
    "align": "align_verb:align",
    "chat": "chat_verb:chat",
    "check": "check_verb:check",
    "verify-resume": "verify_resume_verb:verify_resume",
    "table": "table_verb:table",
    "recipes": "recipes_verb:recipes",
    "keys": "keys_verb:keys",
    "doctor": "doctor_verb:doctor",
    "plan": "plan_verb:plan",
    "convert": "convert_verb:convert",
    "bench": "bench_verb:bench",
    "completion": "completion_verb:completion",
    "attention": "attention_verb:app",
    "data": "data_verb:app",
    "tokenizer": "tokenizer_verb:app",
}
ASKING = {"predict", "look", "align"}  # whose inputs may be negative numbers


class Commands(Mapping[str, Any]):
    """The commands of all verbs; the file of a verb is imported when it is called, or told of in the help."""

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = VERBS[name].partition(":")
        verb = getattr(import_module(f"heedful.cli.{module}"), attribute)
        if isinstance(verb, typer.Typer):  # a group of verbs
            command: Any = typer.main.get_group(verb)
            command.name = name
            return command
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name, cls=Asking if name in ASKING else Verb)(verb)
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class Verbs(TyperGroup):
    """The program: a group of verbs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()  # type: ignore[assignment]  # is only read

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the verbs, none of which is imported for it."""
        return [*self.commands]


app = typer.Typer(
    cls=Verbs,
    help="Train attention models on your own files with one command, and see where they look.",
    epilog="Begin with `heedful recipes`, train with `heedful train NAME`; `heedful VERB --help` has examples.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def version(version: bool = typer.Option(False, "--version", help="Say which version this is.")) -> None:
    """Train attention models on your own files with one command, and see where they look."""
    if version:
        from heedful import __version__

        say(f"heedful {__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Runs the program. Status: 0, 1 for a failure, 2 for bad input, 130 for Ctrl-C, SIGTERM and SIGHUP."""
    terminal.hold()
    try:
        run(arguments)
    except SystemExit as left:
        gone = isinstance(left.__context__, BrokenPipeError)  # so rich leaves, which prints the help
        status = terminal.flush_output(left.code if isinstance(left.code, int) and not gone else 0)
        if "RANK" not in os.environ:
            sys.exit(status)
        from heedful.training.distributed.ranks import leave

        leave(status)


def run(arguments: list[str] | None) -> None:
    """Runs the program, up to the status that it leaves with."""
    warnings.showwarning = one_line
    warnings.filterwarnings("ignore", "Image size .* decompression bomb")  # Pillow's; such images are refused
    command, given = typer.main.get_command(app), sys.argv[1:] if arguments is None else arguments
    try:
        with stopping(), command.make_context("heedful", texts(given)) as context:  # `main` has statuses of its own
            command.invoke(context)
        sys.exit(0)
    except UsageError as error:
        stop(*usage(error, command))
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except (Refusal, Failure) as error:
        stop(str(error), error.status)
    except (KeyboardInterrupt, typer.Abort):
        stop("stopped", 130)
    except BrokenPipeError:
        sys.exit(0)  # who reads has heard enough
    except Exception as error:
        stop(*of_the_machine(error))


def texts(arguments: list[str]) -> list[str]:
    """The arguments themselves, where all of them are text."""
    for argument in arguments:
        if not is_text(argument):
            raise Refusal(f"{argument!r} is not UTF-8; rename the file, or convert the input with {RECODED}")
    return arguments


def stop(line: str, status: int) -> None:
    """Says why on one line, where there is something to say, and leaves."""
    if line:
        note(f"heedful: {' '.join(line.split())}")
    sys.exit(status)


def usage(error: Any, command: Any) -> tuple[str, int]:
    """What was wrong with the words of a call, with the nearest known verb or option; nothing where it was no words."""
    said = error.format_message().rstrip(".")
    name = error.ctx.command_path if error.ctx else "heedful"
    if not said:
        return "", 0  # the help was shown
    if said.startswith("No such command"):
        word = said.split("'")[1]
        known = sorted(getattr(error.ctx.command if error.ctx else command, "commands", {}))
        return f"unknown verb {word!r}{nearest(word, known) or ';'} known: {', '.join(known)}", 2
    return f"{said[0].lower()}{said[1:]}; `{name} --help` says how it is called", 2


def of_the_machine(error: Exception) -> tuple[str, int]:
    """What the machine could not do, and the status; any other error is a fault of our own, and is raised again."""
    if isinstance(error, OSError):
        cure, status = ("make room, or use another disk", 1) if error.errno in FULL else ("check the path", 2)
        return f"{error.filename or 'the system'}: {error.strerror or error}; {cure}", status
    if short_of_memory(error):
        return "there is not enough memory; choose a smaller model, batch or input", 1
    raise error


def one_line(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning without the place in the code that it came from."""
    note(f"heedful: warning: {' '.join(str(message).split())}")
