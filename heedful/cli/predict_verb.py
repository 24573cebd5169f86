"""`heedful predict`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.answers_told import tell, tell_pieces
from heedful.cli.arguments import Device, Folder, is_text, warn_of
from heedful.cli.search_options import option, search_spec
from heedful.errors import RECODED, Refusal
from heedful.terminal import note

if TYPE_CHECKING:
    from torch import nn

    from heedful.pipelines.asked_files import Inputs
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
    best: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="The K likeliest answers to each input: classes, tags, spans, words, texts."
        ),
    ] = None,
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
    file: Annotated[
        Path | None,
        typer.Option("--in", metavar="FILE", help="Inputs: lines, .csv, .tsv or .jsonl, or a folder of images."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For the answers: a column of a .csv or .tsv, a .jsonl, or else lines."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="With --in: the columns to read, by name or number.")
    ] = None,
    encoding: Annotated[str, typer.Option(metavar="NAME", help="With --in: of its text, such as latin-1.")] = "utf-8",
    device: Device = None,
) -> None:
    """Ask a trained model: one line for each answer, in order.

    A model that writes searches for its answers as its recipe says, unless an option says otherwise. An input that
    cannot be read is named and answered by an empty line, and the status is then 1; it is 2 if none could be read.
    """
    from heedful.pipelines.answer_files import AnswerForm
    from heedful.pipelines.pipeline import Search
    from heedful.training import run

    said = {"beams": beams, "length_penalty": length_penalty, "temperature": temperature, "top_k": top_k}
    said |= {"top_p": top_p, "min_p": min_p, "max_new_tokens": max_new_tokens}
    besides = {"seed": seed, "stream": stream or None}
    given, also = ({key: value for key, value in row.items() if value is not None} for row in (said, besides))
    refuse_contradictions(stream, as_json, similar, best, out)
    model, task = run.usable(folder)
    model.to(run.device(device))
    decoding = search_spec(task, given, also, best) if examples is None else task.decoding
    asked = read_inputs(task, inputs or [], file, columns, encoding)
    warn_of(task, asked.texts)
    if stream and examples is None and not similar:
        tell_pieces(task, model, asked, decoding, seed or 0)
        return
    if examples is not None:
        for key in (*given, *also):
            raise Refusal(f"{option(key)} is for answers that are searched for, and --examples has them; leave it out")
        answers: Iterable[Sequence[Result]] = few(model, examples, asked.given, best or 1)
    elif similar:
        answers = ([row] for row in nearness(task, model, asked.given))
    else:
        answers = task.ask(model, asked.given, Search(best, decoding, seed or 0))
    tell(answers, asked, AnswerForm(as_json, best), out)


def read_inputs(task: Use, words: list[str], file: Path | None, columns: str | None, encoding: str) -> Inputs:
    """The inputs that were typed, or of a file, or of standard input."""
    from heedful.pipelines.asked_files import Inputs, inputs_of_file

    if file is not None and words:
        raise Refusal(f"--in {file} and {words[0][:40]!r} are both given; leave one of them out")
    if file is not None:
        names = [name.strip() for name in (columns or "").split(",") if name.strip()]
        return inputs_of_file(file, task.pipeline, names, encoding)
    if columns is not None or encoding != "utf-8":
        raise Refusal(f"--{'columns' if columns is not None else 'encoding'} is of a file; give --in FILE too")
    asked = words or lines_of_input()
    if not asked:
        raise Refusal(f"standard input is empty; give {task.input}, one a line")
    return Inputs.of_words(asked)


def refuse_contradictions(stream: bool, as_json: bool, similar: bool, best: int | None, out: Path | None) -> None:
    """Refuses a file that could not be written, and what cannot be printed together."""
    from heedful.safe import outfile

    if out is not None:
        outfile.check(out)
    if stream and as_json:
        raise Refusal("--stream prints an answer as it is written and --json when it is whole; leave one of them out")
    if stream and out is not None:
        raise Refusal("--stream prints an answer as it is written and --out when all are; leave one of them out")
    if similar and best is not None:
        raise Refusal("--similar compares inputs with each other, and has no best answers; leave --best out")


def few(model: nn.Module, path: Path, asked: Sequence[str], best: int) -> Iterator[list[Text]]:
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


def nearness(task: Use, model: nn.Module, asked: Sequence[str]) -> Iterator[Vector]:
    """How near each input is to each, a row a line, where the model gives vectors."""
    from heedful.results import Vector

    if len(asked) < 2:
        raise Refusal("--similar compares inputs with each other; give two or more")
    return (Vector(tuple(round(near, 4) for near in row)) for row in task.similar(model, asked).tolist())


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
