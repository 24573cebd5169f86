"""`heedful tokenizer`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful import terminal
from heedful.cli.arguments import Asking, Verb
from heedful.errors import RECODED, Refusal
from heedful.terminal import Bars, note, say

if TYPE_CHECKING:
    from heedful.tokenizers import Tokenizer

app = typer.Typer(help="Train tokenizers, and see how text becomes tokens.", no_args_is_help=True)

AT_ONCE = 1000  # lines of input that are encoded together
Given = Annotated[Path, typer.Argument(metavar="TOKENIZER", help="A tokenizer.json, or a SentencePiece .model.")]
Texts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TEXT]...", help="Texts; if nothing is given, each line of standard input."),
]


@app.command("train", cls=Verb)
def train(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Text files in UTF-8, plain or gzipped.")],
    kind: Annotated[str, typer.Option(help="characters, words, bpe, bpe_characters, wordpiece or unigram.")] = "bpe",
    size: Annotated[int, typer.Option(help="The largest number of tokens, special ones included.")] = 8000,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write it.")] = Path("tokenizer.json"),
    special: Annotated[
        list[str] | None, typer.Option(metavar="TOKEN", help="A special token, such as '<User:>'; may be repeated.")
    ] = None,
    digits: Annotated[str, typer.Option(help="joined (with letters), apart (in runs) or single.")] = "apart",
    punctuation: Annotated[str, typer.Option(help="joined (with letters), apart (in runs) or single.")] = "apart",
    alphabet: Annotated[
        int | None, typer.Option(metavar="N", help="Learn only the N most frequent characters; all by default.")
    ] = None,
    lower: Annotated[bool, typer.Option("--lower", help="Read capital letters as small ones.")] = False,
) -> None:
    """Train a tokenizer on files of any size, each line a text; the same files give the same bytes.

    Ids 0 to 3 are <pad>, <begin>, <end> and <unknown>; then come the special tokens, then those that are learned. bpe
    works on bytes, and bpe_characters writes unknown characters as bytes, so that every text can be read back exactly.
    """
    from heedful.safe import outfile
    from heedful.tokenizers import train_files

    outfile.check(out)
    if any(file.exists() and out.exists() and file.samefile(out) for file in files):
        raise Refusal(f"--out {out} is one of the files to learn from; choose another")
    how: dict[str, Any] = {"digits": digits, "punctuation": punctuation, "lower": lower}
    with progress(files) as heard:
        made = train_files(files, kind, size, special or (), alphabet=alphabet, said=tell, heard=heard, **how)
    made.write(out)
    (say if outfile.stream(out) is None else note)(f"{out}: {kind}, {len(made):,} tokens")


@app.command("encode", cls=Asking)
def encode(
    tokenizer: Given,
    texts: Texts = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="Show the pieces instead of the ids.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: text, ids and pieces.")] = False,
    longest: Annotated[int | None, typer.Option(min=1, metavar="N", help="Keep only so many tokens of a text.")] = None,
) -> None:
    """Turn texts into ids: a line for each, in order, ids with blanks between."""
    from heedful.tokenizers.explain import join_pieces

    made = open_tokenizer(tokenizer)
    for batch in batches(texts if texts else lines()):
        for text, ids in zip(batch, made.encode_all(batch, longest), strict=True):
            if as_json:
                row = {"text": text, "ids": ids, "pieces": made.pieces(ids)}
                say(json.dumps(row, ensure_ascii=False))
            else:
                say(join_pieces(tuple(made.pieces(ids))) if pieces else " ".join(map(str, ids)))


@app.command("decode", cls=Asking)
def decode(
    tokenizer: Given,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="The ids of one text; standard input, a text a line, where none is given."
        ),
    ] = None,
) -> None:
    """Turn ids into text, special tokens left out."""
    made = open_tokenizer(tokenizer)
    for batch in batches([" ".join(ids)] if ids else lines()):
        for text in made.decode_all([numbers(line) for line in batch]):
            say(text)


@app.command("explain", cls=Asking)
def explain(tokenizer: Given, texts: Texts = None) -> None:
    """Show how texts become tokens: the pieces, their ids and, for BPE, merge by merge how each word's pieces arose.

    The number before a merge is its rank among all merges that were learned: of those that apply, the one with the
    lowest rank is done first.
    """
    made = open_tokenizer(tokenizer)
    for at, text in enumerate(texts if texts else lines()):
        say("\n".join([*([""] if at else []), *made.explain(text).lines()]))


def open_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a file."""
    from heedful.tokenizers import Tokenizer

    try:
        return Tokenizer.read(path)
    except Refusal as refused:
        raise Refusal(f"{refused}; train one with `heedful tokenizer train`") from None


def tell(line: str) -> None:
    """Says what happens, beside the answer."""
    note(f"heedful: {line}")


@contextmanager
def progress(files: list[Path]) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal that fills as files are read, and then says that pieces are learnt."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeElapsedColumn

    console, total = Bars(), sum(file.stat().st_size for file in files if file.is_file())
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeElapsedColumn())
    if not console.is_terminal:
        with terminal.progress("counting words", total) as told:
            yield told
        return
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("counting words", total=total)

        def heard(read: int) -> None:
            bar.update(task, advance=read)
            if bar.tasks[0].completed >= total:
                bar.update(task, description="learning", total=None)

        yield heard


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts, some at a time."""
    rest = iter(texts)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch


def lines() -> Iterator[str]:
    """The lines of standard input without their ends, as they come."""
    number = 0
    for number, line in enumerate(sys.stdin.buffer if sys.stdin else (), 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            cure = f"convert it, for instance with {RECODED}"
            raise Refusal(f"standard input, line {number}: not UTF-8; {cure}") from None
        yield text.removesuffix("\n").removesuffix("\r")
    if not number:
        raise Refusal("standard input is empty; give a text, or one a line")


def numbers(line: str) -> list[int]:
    """The ids of a line."""
    for word in line.split():
        if not word.removeprefix("-").isdecimal() or len(word) > 18:
            raise Refusal(f"{word[:30]!r} is no id; give whole numbers with blanks between")
    return list(map(int, line.split()))
