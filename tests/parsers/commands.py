"""Whole command lines: every verb with words and options by seeded dice, of which some are good."""

import contextlib
import io
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer

from heedful import cli
from heedful.errors import Refusal
from tests.formats.malice.good import BEGUN, make
from tests.parsers.doors import Good, written
from tests.parsers.mutations import SCALARS, of_bytes

CALLS = (
    *("predict pairs ab", "predict sets 1,2", "predict run 123 --beams 2", "eval run", "check run", "table run"),
    *("look run 12 --out x.html", "look sets 1,2 --out x.json", "align pairs ab", "chat gpt2", "plan reverse"),
    *("convert pairs new --to hf", "convert gpt2 own --to heedful", "recipes --json", "data list", "data get none"),
    *(
        "attention list",
        "attention explain linear --out x.svg",
        "bench none",
        "train reverse --out new",
        "train own.yaml",
    ),
    *("tokenizer train a.tsv --kind words --size 40 --out t.json", "tokenizer encode tok.json ab --longest 3"),
    *("tokenizer decode tok.json 5", "tokenizer explain tok.json ab", "train reverse --resume --out run"),
)
WORDS = (
    *(
        "run",
        "pairs",
        "sets",
        "series",
        "gpt2",
        "run/model",
        "none",
        "a.tsv",
        "/dev/null",
        "",
        ".",
        "hub:x/y",
        "reverse",
    ),
    *("a b", "-1", "0", "3", "2.5", "nan", "x.html", "x.svg", "\u00e9", "\x1b[2J", "{}", "9" * 30, "1e400", "cuda"),
    *("--", "-", "--x", "-h", "--version", "-\0", "--json=", "seed=3", "model.mechanism=linear", "data.train=a.tsv"),
)


def options(command: Any) -> list[str]:
    """The options of all verbs."""
    inner = [name for one in getattr(command, "commands", {}).values() for name in options(one)]
    return inner + [name for one in command.params for name in one.opts if name.startswith("-")]


OPTIONS = sorted(set(options(typer.main.get_command(cli.app))))


def of_call(dice: Random, _: bytes) -> bytes:
    """The words of a call, most often with some that are others, too many or too few."""
    words = dice.choice(CALLS).split()
    for _ in range(dice.choice((0, 1, 1, 2))):
        at, how = dice.randrange(len(words)), dice.randrange(5)
        new = dice.choice((*WORDS, *SCALARS)) if how < 3 else dice.choice(OPTIONS)
        if how == 0:
            words[at] = new
        elif how == 1:
            words[at] = of_bytes(dice, words[at].encode()).decode("utf-8", "replace")
        else:
            words[at + 1 : at + 1] = [new] if how < 4 else [new, dice.choice((*WORDS, *SCALARS))]
    return json.dumps([*words, *(BEGUN if words[0] in ("train", "plan", "verify-resume") else ())]).encode()


def commands(place: Path) -> list[Good]:
    """The command line, called as a program is, in a folder of its own."""
    for name in ("run", "pairs", "sets", "series", "gpt2"):
        make(place / name, name)
    (place / "a.tsv").write_text("ab\tba\ncd\tdc\n" * 20)
    (place / "tok.json").write_bytes((place / "pairs" / "tokenizer.json").read_bytes())
    (place / "own.yaml").write_text("task: pairs\ndata: reverse\nmodel: {family: transformer}\n")

    def called(path: Path) -> None:
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            patch.chdir(place)
            patch.setenv("HEEDFUL_DATA", str(place))
            patch.setenv("HF_HUB_OFFLINE", "1")
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b\n")))
            patch.setattr("urllib.request.urlopen", nowhere)
            try:
                cli.run(json.loads(path.read_text()))
            except SystemExit as left:
                if left.code == 2:
                    raise Refusal(said.getvalue().splitlines()[-1] if said.getvalue() else "usage") from None
                if left.code:
                    raise RuntimeError(f"status {left.code}: {said.getvalue()[-300:]}") from None

    return [written(place / "words.json", "[]", of_call, called)]


def nowhere(*_: object, **__: object) -> None:
    raise Refusal("there is no network in this test; name files")


DOORS = {"commands": commands}
