"""The chances of the next token at several temperatures: exact as numbers, and drawn the same every time."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful.cli import main
from heedful.decoding.scoring import following
from heedful.decoding.truncation import apply_temperature
from tests.decoding.test_continuing import LETTERS, speaker, with_letters


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, model = tmp_path_factory.mktemp("heat") / "model", with_letters(speaker(2))
    heedful.save(model, place)
    if not (place / "tokenizer.json").exists():
        model.tokenizer.write(place / "tokenizer.json")
    return place


def look(folder: Path, *words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["look", str(folder), "abc", *words])
    return int(stop.value.code or 0)


def test_numbers_are_those_of_the_model(folder: Path, tmp_path: Path, capsys: Any) -> None:
    assert look(folder, "--temperatures", "0.5,1,3", "--out", str(tmp_path / "t.json")) == 0
    told = json.loads((tmp_path / "t.json").read_text())
    chances = following(heedful.load(folder), "abc").double()
    assert told["text"] == "abc" and [row["temperature"] for row in told["temperatures"]] == [0.5, 1.0, 3.0]
    for row in told["temperatures"]:
        expected = apply_temperature(chances, row["temperature"]).softmax(-1)
        for word, chance in row["chances"].items():
            if word in LETTERS:
                assert chance == pytest.approx(float(expected[LETTERS.index(word) + 4]))
    firsts = [max(row["chances"].values()) for row in told["temperatures"]]
    assert firsts == sorted(firsts, reverse=True)  # the warmer, the flatter
    assert len({tuple(row["chances"]) for row in told["temperatures"]}) == 1


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures_are_the_same_every_time(folder: Path, tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        assert look(folder, "--temperatures", "0.2,1", "--out", str(tmp_path / f"{name}.{ending}")) == 0
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    if ending == "svg":
        assert all(
            said in (tmp_path / "a.svg").read_text() for said in ("temperature 0.2", "temperature 1", "all others")
        )


@pytest.mark.parametrize("given", ["", "0", "1,x", "-1", "inf", "1,2,3,4,5,6,7"])
def test_what_is_no_temperature_is_refused(folder: Path, tmp_path: Path, given: str, capsys: Any) -> None:
    assert look(folder, f"--temperatures={given}", "--out", str(tmp_path / "t.png")) == 2
    assert "give one to six numbers above 0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_page_of_temperatures_is_refused(folder: Path, tmp_path: Path, capsys: Any) -> None:
    assert look(folder, "--temperatures", "1", "--out", str(tmp_path / "t.html")) == 2
    assert "use one of .png, .svg, .json" in capsys.readouterr().err


def test_the_first_token_of_an_encoder_decoder_can_be_drawn_too() -> None:
    from tests.decoding.toys import writer

    chances = following(writer(4), torch.tensor([4, 5, 6]))
    assert chances.shape == (12,) and chances.exp().sum() <= 1
