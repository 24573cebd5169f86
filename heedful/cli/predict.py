"""`heedful predict`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from heedful.cli.arguments import Device, Folder, is_text, warn_of
from heedful.errors import Refusal


def predict(
    folder: Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INPUT]...", help="Inputs; standard input, one a line, where none is given."),
    ] = None,
    beams: Annotated[
        int, typer.Option(min=1, max=1000, help="Beams to search with; 1 is greedy. For models that write.")
    ] = 1,
    best: Annotated[int, typer.Option(min=1, help="How many answers to give for each input, with their scores.")] = 1,
    length_penalty: Annotated[
        float, typer.Option(min=-10, max=10, help="With beams: above 0 favours long answers (GNMT's; 0.6 is usual).")
    ] = 0.0,
    device: Device = None,
) -> None:
    """Ask a trained model: one answer a line, in order."""  # fmt: skip
    from heedful.tasks import Pairs
    from heedful.training import run

    if best > beams:
        raise Refusal(f"--best {best} needs at least as many --beams; give --beams {best}")
    model, task = run.trained(folder)
    model.to(run.device(device))
    if beams > 1 and not isinstance(task, Pairs):
        raise Refusal(f"--beams is for models that write, and this one's task is {task.name}; leave it out")
    asked = inputs or lines_of_input()
    if not asked:
        raise Refusal(f"standard input is empty; give {task.input}, one a line")
    warn_of(task, asked)
    if beams == 1 or not isinstance(task, Pairs):
        for answer in task.predict(model, asked):
            typer.echo(answer)
        return
    for answers in task.best(model, asked, beams, best, length_penalty):
        for answer, score in answers:
            typer.echo(f"{answer}\t{score:.4f}" if best > 1 else answer)


def lines_of_input() -> list[str]:
    """The lines of standard input without their ends."""
    wrong = Refusal("standard input is not UTF-8; convert it, for instance with iconv -t UTF-8")
    try:
        lines = [line.removesuffix("\n").removesuffix("\r") for line in sys.stdin or ()]
    except UnicodeDecodeError:
        raise wrong from None
    if not all(map(is_text, lines)):
        raise wrong
    return [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else []
