"""`heedful predict`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.arguments import Device, Folder, is_text, warn_of
from heedful.errors import RECODED, Refusal
from heedful.terminal import Bars, is_terminal, note, say

if TYPE_CHECKING:
    from torch import nn

    from heedful.decoding import Decoding
    from heedful.pipelines.use import Use
    from heedful.results import Result, Text, Vector


def predict(
    folder: Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INPUT]...", help="What to ask; if nothing is given, each line of standard input."),
    ] = None,
    beams: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Search with this many beams; 1 is greedy. For models that write."),
    ] = None,
    best: Annotated[int, typer.Option(min=1, help="How many answers to give for each input, with their scores.")] = 1,
    length_penalty: Annotated[
        float | None,
        typer.Option(min=-10, max=10, help="With beams: values above 0 favour longer answers (GNMT's; 0.6 is usual)."),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(min=0, help="Draw the answer at random, instead of searching; 1 draws as the model predicts."),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=0, help="With a temperature: draw among the K likeliest tokens; 0 for all.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(max=1, help="With a temperature: draw among the likeliest that together have this probability."),
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option(
            min=0, help="With a temperature: drop tokens below this share of the likeliest one's probability."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="With a temperature: another seed gives other answers.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="The longest answer, in tokens; by default 50 more than its input.")
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print each answer as it is written.")] = False,
    similar: Annotated[
        bool,
        typer.Option("--similar", help="For models that give vectors: the cosine similarity of all pairs of inputs."),
    ] = False,
    examples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For language models: a file of inputs with answers, put into the prompt to classify by.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object for each answer: with its kind, probabilities and scores."),
    ] = False,
    device: Device = None,
) -> None:
    """Ask a trained model: one line for each answer, in order.

    A model that writes searches for its answers as its recipe says, unless an option says otherwise.
    """
    from heedful.training import run

    said = {"beams": beams, "length_penalty": length_penalty, "temperature": temperature, "top_k": top_k}
    said |= {"top_p": top_p, "min_p": min_p, "max_new_tokens": max_new_tokens}
    given = {key: value for key, value in said.items() if value is not None}
    also = {"best": best if best > 1 else None, "seed": seed, "stream": stream or None}
    model, task = run.usable(folder)
    model.to(run.device(device))
    besides = {key: value for key, value in also.items() if value is not None}
    decoding = how(task, given, besides) if examples is None else None
    asked = inputs or lines_of_input()
    if not asked:
        raise Refusal(f"standard input is empty; give {task.input}, one a line")
    if stream and as_json:
        raise Refusal("--stream prints an answer as it is written and --json when it is whole; leave one of them out")
    warn_of(task, asked)
    if examples is not None:
        for key in (*given, *(key for key in besides if key != "best")):
            raise Refusal(f"{option(key)} is for answers that are searched for, and --examples has them; leave it out")
        tell((lines(found, best, as_json) for found in few(model, examples, asked, best)), len(asked))
    elif similar:
        tell((lines([row], 1, as_json) for row in nearness(task, model, asked)), len(asked))
    elif decoding is None:
        tell((lines([answer], 1, as_json) for answer in task.predict(model, asked)), len(asked))
    elif stream:
        tell_pieces(task, model, asked, decoding, seed or 0)
    else:
        found = task.best(model, asked, decoding, best, seed or 0)
        tell((lines(answers, best, as_json) for answers in found), len(asked))


def how(task: Use, given: dict[str, Any], also: dict[str, Any]) -> Decoding | None:
    """How answers are searched for, where the model writes: as the task says, and otherwise where options say so."""
    if not task.writes:
        for key in (*given, *also):
            raise Refusal(f"{option(key)} is for models that write, and this one's task is {task.name}; leave it out")
        return None
    try:
        decoding = task.decoding.but(**given)
    except Refusal as refused:
        raise Refusal(re.sub(r"\b([a-z_]+)=", lambda key: f"{option(key[1])} ", str(refused))) from None
    if fault := contradiction(decoding, given, also):
        raise Refusal(fault)
    return decoding


def few(model: nn.Module, path: Path, asked: list[str], best: int) -> Iterator[list[Text]]:
    """The answers of a file of examples, the best first, to each input that stands behind them in a prompt."""
    from heedful.data.formats.labelled_text import read_sentences
    from heedful.decoding.few_shot import Few
    from heedful.results import Text

    examples = [(one.texts, one.label) for one in read_sentences(str(path))]
    shown, inputs = Few(model, examples), [tuple(text.split("\t")) for text in asked]
    if best > len(shown.choices):
        raise Refusal(f"--best {best} asks for more answers than the {len(shown.choices)} in {path}; lower it")
    for at, texts in enumerate(inputs, 1):
        if not all(text.strip() for text in texts) or len(texts) != len(examples[0][0]):
            wanted = "a text" if len(examples[0][0]) == 1 else "two texts with a tab between them"
            raise Refusal(f"input {at}: {' '.join(texts)[:40]!r} is not as the examples are; give {wanted}")
    if (least := min(map(shown.fitting, inputs))) < len(examples):
        line = (
            f"heedful: warning: there is room for {least} of the {len(examples)} examples, the last ones of each answer"
        )
        note(line)
    return ([Text(answer, score) for answer, score in shown.chosen(texts)[:best]] for texts in inputs)


def nearness(task: Use, model: nn.Module, asked: list[str]) -> Iterator[Vector]:
    """How near each input is to each, a row a line, where the model gives vectors."""
    from heedful.results import Vector

    if len(asked) < 2:
        raise Refusal("--similar compares inputs with each other; give two or more")
    return (Vector(tuple(round(near, 4) for near in row)) for row in task.similar(model, asked).tolist())


def contradiction(decoding: Decoding, given: dict[str, Any], also: dict[str, Any]) -> str | None:
    """What options ask for that cannot be had together, and which to leave out."""
    beams, best = decoding.beams, also.get("best", 1)
    if "stream" in also and best > 1:
        return f"--stream prints one answer as it is written and --best {best} asks for more; leave one of them out"
    if "stream" in also and beams > 1:
        return f"--stream prints what is written at once and {beams} beams choose at the end; give --beams 1"
    if "seed" in also and not decoding.temperature:
        return "--seed is for answers drawn by chance; give --temperature too, or leave it out"
    if "length_penalty" in given and beams == 1:
        return "--length-penalty compares what several beams find; give --beams 2 or more, or leave it out"
    if best > beams and not decoding.temperature:
        return f"--best {best} needs at least as many --beams; give --beams {best}"
    return None


def option(key: str) -> str:
    """A key as it is written on the command line."""
    return f"--{key.replace('_', '-')}"


def lines(answers: Sequence[Result], best: int, as_json: bool) -> list[str]:
    """The answers to one input as they are printed: with their scores where there are several."""
    if as_json:
        return [json.dumps(one.json(), ensure_ascii=False) for one in answers]
    return [one.scored() if best > 1 else one.plain() for one in answers]


def tell(answers: Iterable[list[str]], count: int) -> None:
    """Prints the lines of each of `count` answers; where they go into a file, they are counted on the terminal."""
    if is_terminal(sys.stdout) or not is_terminal(sys.stderr):
        for answer in answers:
            say("\n".join(answer))
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    # what is redirected would go where the bar is
    with Progress(*columns, console=Bars(), transient=True, redirect_stdout=False) as bar:
        for answer in bar.track(answers, total=count):
            say("\n".join(answer))


def tell_pieces(task: Use, model: nn.Module, asked: list[str], decoding: Decoding, seed: int) -> None:
    """Prints each answer piece by piece, as it is written; all inputs are read before the first is answered."""
    from heedful.pipelines.pipeline import read_all

    for pieces in read_all(enumerate(asked), lambda one: task.stream(model, one[1], decoding, seed, one[0])):
        for piece in pieces:
            say(piece, end="", flush=True)
        say(flush=True)


def lines_of_input() -> list[str]:
    """The lines of standard input without their ends."""
    wrong = Refusal(f"standard input is not UTF-8; convert it, for instance with {RECODED}")
    try:
        lines = [line.removesuffix("\n").removesuffix("\r") for line in sys.stdin or ()]
    except UnicodeDecodeError:
        raise wrong from None
    if not all(map(is_text, lines)):
        raise wrong
    return [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else []
