"""Data that changed since a run was begun are noticed, wherever in them, and however they are held."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from heedful.data.images import gallery
from heedful.safe.sealed_folders import MANIFEST
from heedful.tasks import task_of
from heedful.training import checkpoint, recipes
from heedful.training.data_checksum import sum_of
from heedful.training.loop import Loop
from heedful.training.run import go_on
from heedful.training.run_spec import reader_of
from tests.training.runs import killed_at, loop_of, train

ROWS = 1500


def rows(of: Callable[[int], str], ending: str = "tsv", count: int = ROWS) -> Callable[[Path], Path]:
    """A file of lines."""

    def write(place: Path) -> Path:
        path = place / f"data.{ending}"
        path.write_text("".join(f"{of(at)}\n" for at in range(count)), encoding="utf-8")
        return path

    return write


def photos(place: Path) -> Path:
    """A folder of images in two classes."""
    for at in range(60):
        (place / f"class{at % 2}").mkdir(exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), at, dtype=np.uint8)).save(place / f"class{at % 2}" / f"{at:02d}.png")
    return place


KINDS: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    "pairs": (rows(lambda at: f"{at:04d}\t{at:04d}"), {"tokenizer": "characters"}),
    "sequences": (rows(lambda at: f"{at:04d} 1\t{at % 2}"), {}),
    "classify": (rows(lambda at: f"a sentence {at:04d}\t{at % 2}"), {"tokenizer": "characters"}),
    "tag": (rows(lambda at: f"word{at:04d}\tB-{at % 3}\n"), {"tokenizer": "wordpiece(size=100)"}),
    "language-modelling": (rows(lambda at: f"line {at:04d} of a text", "txt"), {"tokenizer": "characters"}),
    "glove": (rows(lambda at: f"line {at:04d} of a text", "txt"), {"tokenizer": "words"}),
    "series": (rows(lambda at: f"{at % 7},{at % 5}", "csv"), {}),
    "image-classification": (photos, {"pixels": 8}),
}


def change(data: Path, share: float) -> Callable[[], object]:
    """Changes a digit of a file, or a pixel of an image of a folder, about so far within; gives what puts it back."""
    found = sorted(data.rglob("*.png")) if data.is_dir() else [data]
    path = found[int(share * len(found))]
    whole = path.read_bytes()
    if data.is_dir():
        image = Image.open(path)
        image.putpixel((7, 7), (255, 0, 0))
        image.save(path)
    else:
        at = next(at for at in range(int(share * len(whole)), len(whole)) if whole[at : at + 1].isdigit())
        path.write_bytes(whole[:at] + (b"1" if whole[at : at + 1] != b"1" else b"0") + whole[at + 1 :])
    return lambda: path.write_bytes(whole)


@pytest.mark.parametrize("name", [*KINDS, "images that are not kept"])
def test_any_change_of_the_data_changes_their_sum_and_another_place_does_not(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name not in KINDS:
        monkeypatch.setattr(gallery, "ROOM", 0)
        name = "image-classification"
    write, how = KINDS[name]

    def summed(place: Path) -> str:
        said = {"name": str(place), **how}
        return sum_of(task_of(name).open(reader_of(name, said)(**said), 0)[1])

    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    data, moved = write(tmp_path / "one"), write(tmp_path / "other")
    first = summed(data)
    assert summed(moved) == first
    for share in (0.11, 0.57, 0.93):
        put_back = change(moved, share)
        assert summed(moved) != first, share
        put_back()


def test_a_run_that_goes_on_with_other_data_says_so_and_one_that_was_begun_before_goes_on(tmp_path: Path) -> None:
    data = rows(lambda at: f"{at:02d}\t{at:02d}", count=60)(tmp_path)
    words = ["model.width=16", "model.depth=1", "training.steps=4", "training.save_every=1", "training.batch=4"]
    spec, out = recipes.resolve("reverse", [f"data={data}", *words]), tmp_path / "run"
    with killed_at(Loop, "step", 2):
        train(spec, out)
    change(data, 0.57)
    loop = loop_of(out, spec)
    loop.saver.made["samples"] = sum_of(loop.splits)
    with pytest.warns(UserWarning, match="was made with other data: the run goes on, but perhaps not to the same bits"):
        go_on(loop)
    (place,) = checkpoint.all_of(out / "checkpoints")
    told = json.loads((place / MANIFEST).read_text())
    assert told["made"].pop("samples")
    (place / MANIFEST).write_text(json.dumps(told | {"made": told["made"] | {"data": "0123456789abcdef"}}))
    go_on(loop)  # warnings are errors
