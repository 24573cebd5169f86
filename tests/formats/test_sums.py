"""What `model/` holds is checked by its sums, by whichever road it is read."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import heedful
from heedful.cli import main
from heedful.errors import Refusal
from heedful.formats import CARD, native
from heedful.pipelines.choose_tokenizer import tokenizer_for
from heedful.safe.sealed_folders import MANIFEST
from heedful.training import run
from heedful.training.spec import recipes
from tests.formats.crashes import crash_at, listing
from tests.training.runs import CPU, short, train

SAID = r"{} has other bytes than were written; copy or train it again, or remove .*manifest.json if you changed it"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, of which each test takes a copy."""
    out = tmp_path_factory.mktemp("whole") / "run"
    train(short("classify", training__steps=1, data__samples=30), out)
    return out


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole / "model", tmp_path / "run" / "model")
    shutil.copy(whole / "run.yaml", tmp_path / "run")
    return tmp_path / "run"


def flip(path: Path, at: int) -> None:
    """Flips one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at // 8] ^= 1 << at % 8
    path.write_bytes(data)


def test_a_flipped_bit_of_any_file_is_refused(folder: Path) -> None:
    dice, files = random.Random(0), sorted((folder / "model").iterdir())
    names = {"spec.json", "model.safetensors", "tokenizer.json", "task.json", MANIFEST}
    assert {path.name for path in files} == {*names, CARD}
    files = [path for path in files if path.name != CARD]  # which people may edit
    for path in files:
        before = path.read_bytes()
        for _ in range(8):
            flip(path, dice.randrange(8 * len(before)))
            with pytest.raises(Refusal, match=r"copy or train it again, or remove .* if you changed it on purpose"):
                heedful.load(folder)
            path.write_bytes(before)
    heedful.load(folder)


ROADS: dict[str, Callable[[Path], Any]] = {
    "load": heedful.load,
    "predict": lambda folder: main(["predict", str(folder), "fine"]),
    "eval": lambda folder: main(["eval", str(folder)]),
    "look": lambda folder: main(["look", str(folder), "fine", "--out", str(folder.parent / "a.html")]),
    "convert": lambda folder: native.convert(folder, folder.parent / "new", "hf"),
    "start": lambda folder: run.prepare(recipes.resolve("classify", ["data=toy", f"start={folder}"]), CPU),
}


@pytest.mark.parametrize("road", ROADS)
def test_every_road_checks_the_sums(folder: Path, road: str, capsys: pytest.CaptureFixture[str]) -> None:
    flip(folder / "model" / "model.safetensors", -9)
    with pytest.raises((Refusal, SystemExit)) as refused:
        ROADS[road](folder)
    said = capsys.readouterr().err + str(refused.value)
    assert "model.safetensors has other bytes than were written" in said
    assert not isinstance(refused.value, SystemExit) or refused.value.code == 2


def test_a_tokenizer_that_is_taken_from_a_model_is_checked(folder: Path) -> None:
    named = str(folder)
    flip(folder / "model" / "model.safetensors", -9)
    tokenizer_for(named, [])  # what is not read need not be whole
    flip(folder / "model" / "tokenizer.json", 99)
    with pytest.raises(Refusal, match=SAID.format("tokenizer.json")):
        tokenizer_for(named, [])


def test_the_check_can_be_left_out_and_what_is_changed_on_purpose_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(folder / "model" / "model.safetensors", -9)
    heedful.load(folder, check=False)
    with monkeypatch.context() as patch:
        patch.setenv(native.CHECK, "0")
        run.load_trained(folder)
    with pytest.raises(Refusal, match=SAID.format("model.safetensors")):
        run.load_trained(folder)
    (folder / "model" / MANIFEST).unlink()  # so were all folders before there were manifests
    run.load_trained(folder)


def gpt() -> nn.Module:
    return heedful.build("gpt", vocab=11, width=16, depth=1, heads=2, length=8)


def test_our_layout_alone_is_sealed_whoever_writes_it(tmp_path: Path) -> None:
    heedful.save(gpt(), tmp_path / "hf", layout="hf")
    native.convert(tmp_path / "hf", tmp_path / "own", "heedful")
    assert not (tmp_path / "hf" / MANIFEST).exists()
    (tmp_path / "own" / "README.md").write_text("A page that people edit.")
    heedful.load(tmp_path / "own")
    flip(tmp_path / "own" / "spec.json", 99)
    with pytest.raises(Refusal, match=SAID.format("spec.json")):
        heedful.load(tmp_path / "own")


POINTS = [*((os, "fsync", call) for call in range(1, 8)), (Path, "rename", 1), (Path, "rename", 2)]


@pytest.mark.parametrize(("owner", "name", "call"), POINTS)
def test_a_crash_at_any_write_leaves_a_model_that_loads_or_none(
    tmp_path: Path, owner: Any, name: str, call: int
) -> None:
    place, model = tmp_path / "model", gpt()
    heedful.save(model, place)
    before = listing(place)
    with crash_at(owner, name, call):
        heedful.save(model, place, overwrite=True)
    assert not place.exists() or listing(place) == before
    heedful.save(model, place, overwrite=True)
    heedful.load(place)
