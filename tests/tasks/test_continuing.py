"""Models that write and have no task: on the command line they are asked and looked into as those trained here."""

from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.cli import main
from tests.decoding.test_continuing import speaker, with_letters


@pytest.fixture(scope="module", params=["heedful", "hf"])
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, model = tmp_path_factory.mktemp("writing") / "model", with_letters(speaker(2).float())
    heedful.save(model, place, layout=request.param)
    if not (place / "tokenizer.json").exists():
        model.tokenizer.write(place / "tokenizer.json")
    return place


def said(capsys: Any, *words: str) -> list[str]:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    out, err = capsys.readouterr()
    assert stop.value.code == 0, err
    return out.splitlines()


def test_texts_are_gone_on_with(folder: Path, capsys: Any) -> None:
    model, texts = heedful.load(folder), ["abc", "l", "ka"]
    asked = ["predict", str(folder), *texts, "--max-new-tokens", "9"]
    expected = heedful.generate(model, texts, 9)
    assert said(capsys, *asked) == expected
    assert said(capsys, *asked, "--stream") == expected
    warm = said(capsys, *asked, "--temperature", "2", "--seed", "1")
    assert warm == said(capsys, *asked, "--temperature", "2", "--seed", "1", "--stream") != expected
    best = said(capsys, *asked, "--beams", "3", "--best", "2")
    assert len(best) == 6 and all("\t-" in line for line in best)


def test_it_is_looked_into(folder: Path, tmp_path: Path, capsys: Any) -> None:
    [name, path] = said(capsys, "look", str(folder), "abc", "--out", str(tmp_path / "maps.json"))
    assert name.startswith("abc → ") and Path(path).stat().st_size > 1000
