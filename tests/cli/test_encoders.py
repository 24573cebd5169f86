"""Encoders that were learned elsewhere, on the command line: vectors, how near they are, tags, pictures and laws."""

import json
from pathlib import Path

from tests.cli.conftest import Program

TEXTS = ["the cat sat", "the cats sat", "where is a mat ?"]


def test_a_line_is_a_vector_and_inputs_may_be_piped(heedful: Program, workshop: Path) -> None:
    given = heedful("predict", "encoders/states", *TEXTS)
    piped = heedful("predict", "encoders/states", stdin="\n".join(TEXTS))
    assert (given.status, given.err) == (0, "") and given.out == piped.out
    assert [len(json.loads(line)) for line in given.lines] == [16, 16, 16]


def test_how_near_inputs_are_is_a_table(heedful: Program, workshop: Path) -> None:
    answer = heedful("predict", "encoders/states", "--similar", *TEXTS)
    rows = [json.loads(line) for line in answer.lines]
    assert answer.status == 0 and [row[at] for at, row in enumerate(rows)] == [1.0, 1.0, 1.0]
    assert rows[0][1] == rows[1][0] > rows[0][2] > -1.0


def test_a_text_that_is_cut_is_told(heedful: Program, workshop: Path) -> None:
    answer = heedful("predict", "encoders/tags", "the cat sat " * 20)
    tags = answer.out.split()  # one for each word; those that are not read have none
    assert answer.status == 0 and len(tags) == 60 and set(tags[22:]) == {"O"} and "O" not in tags[:22]
    assert "is 62 tokens long, and the model reads the first 24" in answer.err


def test_an_encoder_is_looked_into_and_its_laws_are_proved(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    answer = heedful("look", "encoders/tags", "the cat sat", "--out", tmp_path / "look.json")
    assert answer.status == 0 and answer.lines[0].startswith("the cat sat → ")
    maps = json.loads((tmp_path / "look.json").read_text())
    assert "encoder.blocks.1.attention" in str(maps) and "[CLS]" in str(maps)
    answer = heedful("check", "encoders/tags")
    assert answer.status == 0 and [line.split()[0] for line in answer.lines] == [
        "holds",
        "n/a",
        "n/a",
        "holds",
        "holds",
    ]
