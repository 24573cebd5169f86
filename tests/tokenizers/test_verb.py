"""`heedful tokenizer`: train, encode, decode and explain, and one line for whatever is wrong."""

import gzip
import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from heedful.cli import main
from heedful.tokenizers import KINDS, Tokenizer
from tests.tokenizers.corpus import TEXTS, tokenizer


@pytest.fixture
def verb(tmp_path, monkeypatch, capfd):
    """Calls the verb in a folder with a text and a tokenizer; gives status, answer and what was said beside it."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("\n".join(TEXTS[-200:]), encoding="utf-8")
    Path("bpe.json").write_text(tokenizer("bpe").layout.text, encoding="utf-8")

    def call(*words: str, stdin: bytes = b"") -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as left:
            main(["tokenizer", *words])
        return left.value.code, *capfd.readouterr()

    return call


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_is_trained_from_plain_and_gzipped_files(verb, kind):
    Path("more.gz").write_bytes(gzip.compress(b"another text\n" * 50))
    status, out, err = verb("train", "text.txt", "more.gz", "--kind", kind, "--size", "500", "--special", "<User:>")
    made = Tokenizer.read("tokenizer.json")
    assert (status, out) == (0, f"tokenizer.json: {kind}, {len(made):,} tokens\n")
    assert err == "" or err.startswith(f"heedful: {len(made)} tokens and not 500: ")
    assert made.kind == kind and made.special["<User:>"] == 4
    assert made.decode(made.encode("another")) == "another"


def test_text_is_encoded_and_decoded_by_arguments_and_by_lines(verb):
    made = tokenizer("bpe")
    lines = [" ".join(map(str, made.encode(text))) for text in ("a man", "", "日本 x")]
    assert verb("encode", "bpe.json", "a man", "", "日本 x") == (0, "\n".join(lines) + "\n", "")
    assert verb("encode", "bpe.json", stdin="\ufeffa man\r\n\n日本 x".encode()) == (0, "\n".join(lines) + "\n", "")
    assert verb("decode", "bpe.json", *lines[2].split()) == (0, "日本 x\n", "")
    assert verb("decode", "bpe.json", stdin="\n".join(lines).encode()) == (0, "a man\n\n日本 x\n", "")
    assert verb("encode", "bpe.json", "a man", "--longest", "1") == (0, lines[0].split()[0] + "\n", "")


def test_pieces_and_json_are_shown_where_asked_for(verb):
    made = tokenizer("bpe")
    shown = "|".join(piece.replace(" ", "␣") for piece in made.pieces(made.encode("a man")))
    assert verb("encode", "bpe.json", "a man", "--pieces") == (0, f"{shown}\n", "")
    _, out, _ = verb("encode", "bpe.json", "a man", "--json")
    ids = made.encode("a man")
    assert json.loads(out) == {"text": "a man", "ids": ids, "pieces": made.pieces(ids)}


def test_an_explanation_is_shown(verb):
    made = tokenizer("bpe")
    told = ["\n".join(made.explain(text).lines()) for text in ("kosten", "a")]
    assert verb("explain", "bpe.json", "kosten", "a") == (0, "\n\n".join(told) + "\n", "")
    assert verb("explain", "bpe.json", stdin=b"kosten\na\n") == (0, "\n\n".join(told) + "\n", "")


def test_training_says_what_was_left_out(verb, monkeypatch):
    monkeypatch.setattr("heedful.tokenizers.training.counts.Words.__init__.__defaults__", ((), 300, False))
    status, _, err = verb("train", "text.txt", "--size", "300")
    assert status == 0
    assert re.fullmatch(r"heedful: \d+ rare words were let go, to keep the memory bounded\n", err)


ONE = "it needs two characters or more, and no white space around them"
FEW = "a size of 9 is too small: 260 tokens come before any is learnt; give at least 260"
HAS = "is no id of this tokenizer, which has 1000: 0 to 999"
NONE = "is no id; give whole numbers with blanks between"
BAD = {  # what is called, and what it says; t stands for text.txt
    "train none.txt": "none.txt does not exist; check the path",
    "train .": ". is a folder; name a file in it",
    "train empty.txt": "empty.txt is empty; it needs at least one line",
    "train t latin.txt": "latin.txt, line 2: not UTF-8; convert the file, for instance with iconv -f latin1 -t UTF-8",
    "train t --kind bep": "unknown kind of tokenizer 'bep'; did you mean 'bpe'? known: bpe, ...",
    "train t --size 9": FEW,
    "train t --size many": "invalid value for '--size': ...; `heedful tokenizer train --help` says how it is called",
    "train t --digits alone": "unknown way to split digits 'alone'; known: apart, joined, single",
    "train t --special ''": f"special token '': {ONE}",
    "train t --special '<a>' --special '<a>'": "special token '<a>': it is given twice; give it once",
    "train t --out .": "--out . is a folder; name a file in it",
    "train t --out no/t.json": "no/t.json cannot be written: there is no folder no; make it or choose another",
    "train t --out t": "--out text.txt is one of the files to learn from; choose another",
    "encode none.json a": "none.json is no tokenizer: No such file or directory; train one with ...",
    "encode . a": ". is a folder; name the tokenizer.json in it; train one with ...",
    "encode t a": "text.txt is no tokenizer: it is neither ...; train one with `heedful tokenizer train`",
    "explain empty.txt a": "empty.txt is no tokenizer: it is empty; train one with `heedful tokenizer train`",
    "decode bpe.json 5 1000": f"1000 {HAS}",
    "decode bpe.json -1": f"-1 {HAS}",
    "decode bpe.json 5 man": f"'man' {NONE}",
    "decode bpe.json 1.5": f"'1.5' {NONE}",
    "decode bpe.json ²": f"'²' {NONE}",
    f"decode bpe.json {'9' * 5000}": f"'999...' {NONE}",
    "encode bpe.json": "standard input is empty; give a text, or one a line",
    "encode bpe.json a --longest 0": "invalid value for '--longest': ...",
    "trian t": "unknown verb 'trian'; did you mean 'train'? known: decode, encode, explain, train",
}


@pytest.mark.parametrize("called", BAD, ids=[called[:40] for called in BAD])
def test_whatever_is_wrong_gets_one_line_and_leaves_nothing_behind(verb, called):
    Path("empty.txt").write_bytes(b"")
    Path("latin.txt").write_bytes("a\nü\n".encode("latin-1"))
    before = {path: path.read_bytes() for path in Path().iterdir()}
    status, out, err = verb(*(word.replace("t", "text.txt") if word == "t" else word for word in shlex.split(called)))
    assert (status, out) == (2, "")
    assert re.fullmatch("heedful: " + re.escape(BAD[called]).replace(r"\.\.\.", "[^\n]*") + "\n", err), err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_input_that_is_not_text_is_named_with_its_line(verb):
    status, _, err = verb("encode", "bpe.json", stdin=b"a\n\xff\n")
    assert (status, err) == (
        2,
        "heedful: standard input, line 2: not UTF-8; convert it, for instance with iconv -f latin1 -t UTF-8\n",
    )


@pytest.mark.parametrize("name", ["train", "encode", "decode", "explain"])
def test_help_has_an_example(verb, name):
    status, out, _ = verb(name, "--help")
    assert status == 0
    assert "Examples:" in out and f"heedful tokenizer {name}" in " ".join(out.split())
