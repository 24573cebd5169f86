"""Where one word looks: its own row of every layer, whatever pieces it is made of, in one input or in two."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.cli import main
from heedful.errors import Refusal
from heedful.looking import draw
from heedful.looking.attention_of_a_word import gaze, places
from heedful.looking.maps import Map
from tests.tasks import encoders

WORDS = ("<s>", "it", " was", " too", " ti", "red", " it", ".")


def layers(rows: tuple[str, ...] = WORDS) -> list[Map]:
    torch.manual_seed(0)
    made = [torch.rand(3, len(rows), len(rows)).softmax(-1) for _ in range(2)]
    return [Map(f"encoder.blocks.{at}.attention", one, rows, rows) for at, one in enumerate(made)]


@pytest.mark.parametrize(
    ("pieces", "word", "found"),
    [
        (WORDS, "it", [6]),
        (WORDS, "IT", [6]),
        (WORDS, "tired", [4, 5]),
        (WORDS, "red", []),
        (WORDS, "wide", []),
        (("the", "an", "##imal", "imal"), "animal", [1, 2]),
        (("the", "an", "##imal", "imal"), "imal", [3]),
        ((" we", " ", "##g", "##o", " to"), "go", [2, 3]),
        ((" we", " ", "##g", "##o", " to"), "o", []),
        (tuple("abit"), "it", [2, 3]),  # letters tell nothing of words
        ((" a", " b ", "it "), "it", [2]),
    ],
)
def test_a_word_is_found_in_its_pieces(pieces: tuple[str, ...], word: str, found: list[int]) -> None:
    assert places(pieces, word) == found


def test_what_a_word_looks_at_is_its_row_of_every_layer() -> None:
    maps = layers()
    found = gaze(maps, "it", "here")
    assert found.rows == ("encoder.0", "encoder.1") and found.columns == WORDS
    torch.testing.assert_close(found.weights[0], torch.stack([map.weights[:, 6].mean(0) for map in maps]))
    parts = gaze(maps, "tired", "here", "encoder.blocks.1.attention")
    assert parts.rows == ("head 0", "head 1", "head 2")
    torch.testing.assert_close(parts.weights[0], maps[1].weights[:, 4:6].mean(1))


def test_a_word_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(Refusal, match=r"--word wide is not one of the words that look: <s> it was too"):
        gaze(layers(), "wide", "here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoders.folder(tmp_path_factory.mktemp("word") / "model", "states")


def look(capsys: Any, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(["look", *words])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), err or out


def test_pictures_that_are_compared_have_the_same_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(draw, "_draw", lambda shelves, path: drawn.extend(*shelves))
    low, high = (Map(name, torch.full((1, 1, 2), w), ("a",), ("b", "c")) for name, w in (("low", 0.1), ("high", 0.5)))
    draw.draw_heads([low, high], "it", tmp_path / "it.png")
    assert [band.span for band in drawn] == [(0.0, 0.5)] * 2


def test_two_inputs_are_shown_for_one_word(folder: Path, tmp_path: Path, capsys: Any) -> None:
    one, two, word = "the", "a", "cats"
    for ending in ("png", "html", "json"):
        out = tmp_path / f"it.{ending}"
        status, said = look(
            capsys, str(folder), f"{one} {word}", "--against", f"{two} {word}", "--word", word, "--out", str(out)
        )
        assert status == 0, said
        assert out.stat().st_size > 500
    told = json.loads((tmp_path / "it.json").read_text())["maps"]
    assert [map["path"] for map in told] == [f"{word}: {one} {word}", f"{word}: {two} {word}"]
    status, said = look(capsys, str(folder), one, "--against", two, "--out", str(tmp_path / "it.png"))
    assert status == 2 and "give --word too" in said
