"""Images of any number of channels, from files to answers and pictures: with transparency, and arrays."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Program

TINY = ["model.patch=4", "model.width=16", "model.depth=1", "model.heads=2", "model.hidden=32", "data.pixels=8"]
BRIEF = ["training.batch=16", "training.warmup=2", "training.evaluate_every=60"]


def transparent(path: Path, pixels: np.ndarray) -> None:
    Image.fromarray(pixels[..., [0, 1, 2, -1]]).save(path.with_suffix(".png"))


def array(path: Path, pixels: np.ndarray) -> None:
    np.save(path.with_suffix(".npy"), pixels)


def folder(place: Path, save: Callable[[Path, np.ndarray], None]) -> Path:
    """Images of two classes that differ in their last channel alone."""
    random = np.random.default_rng(0)
    for at in range(80):
        pixels = random.integers(0, 256, (8, 8, 5), dtype=np.uint8)
        pixels[..., -1] = random.integers(0, 80, (8, 8)) if at % 2 else random.integers(170, 256, (8, 8))
        (place / f"class{at % 2}").mkdir(parents=True, exist_ok=True)
        save(place / f"class{at % 2}" / f"{at}", pixels)
    return place


@pytest.mark.parametrize(("channels", "save"), [(2, transparent), (4, transparent), (5, array)])
def test_what_the_last_channel_alone_tells_is_learned_from_files(
    heedful: Program, tmp_path: Path, channels: int, save: Callable[[Path, np.ndarray], None]
) -> None:
    photos, run = folder(tmp_path / "photos", save), tmp_path / "run"
    given = [f"data={photos}", f"data.channels={channels}", *TINY, *BRIEF, "training.steps=60", "training.rate=0.01"]
    trained = heedful("train", "vit", *given, "--out", run)
    assert trained.status == 0, trained.err
    assert json.loads((run / "result.json").read_text())["scores"]["accuracy"] == 1.0
    assert json.loads(heedful("eval", run).out)["accuracy"] == 1.0
    some = sorted((photos / "class1").iterdir())[0]
    assert heedful("predict", run, some).lines == ["class1"]
    assert heedful("look", run, some, "--out", tmp_path / "seen.html").status == 0
    assert heedful("look", run, some, "--out", tmp_path / "seen.png").status == 0


@pytest.mark.parametrize("recipe", ["mae", "dvae", "dino"])
def test_models_that_are_told_no_class_take_any_number_of_channels(
    heedful: Program, tmp_path: Path, recipe: str
) -> None:
    photos = folder(tmp_path / "photos", array)
    sizes = ["model.width=8", "model.vocab=8", "model.patch=4", "data.pixels=8"] if recipe == "dvae" else TINY
    given = [f"data={photos}", "data.channels=5", "data.augment=[flip]", *sizes, *BRIEF, "training.steps=2"]
    trained = heedful("train", recipe, *given, "--out", tmp_path / "run")
    assert trained.status == 0, trained.err
    assert heedful("predict", tmp_path / "run", sorted((photos / "class1").iterdir())[0]).status == 0


def test_toys_are_drawn_in_any_number_of_channels(heedful: Program, tmp_path: Path) -> None:
    given = ["data=toy", "data.samples=80", "data.held_out=12", "data.channels=6", *TINY, *BRIEF, "training.steps=2"]
    trained = heedful("train", "vit", *given, "--out", tmp_path / "run")
    assert trained.status == 0, trained.err
