"""Before images are learned from: what is done to them is told, and what of it may do harm is warned of."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.tasks import task_of
from heedful.training.spec import recipes


def draw_set(folder: Path, names: tuple[str, str], size: int, twice: bool = False) -> Path:
    """Two classes of images with a bright side, left and right, or both alike."""
    dice = np.random.default_rng(1)
    for at, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for number in range(14):
            pixels = dice.integers(0, 40, (size, size, 3), dtype=np.uint8)
            half = slice(0, size // 2) if at == 0 or twice else slice(size // 2, size)
            pixels[: size // (1 + at * twice), half] = 200
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


def told(folder: Path, *keys: str) -> tuple[str, list[str]]:
    """What a run says of the images of a folder, and what it warns of."""
    run = recipes.resolve("vit", [f"data={folder}", *keys])
    work, splits = task_of(run.task).open(run.data, run.seed)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        said = work.describe_data(splits)
    return said, [str(one.message) for one in found]


def test_size_crop_colours_and_each_augmentation_are_told(tmp_path):
    said, harm = told(draw_set(tmp_path / "set", ("a", "b"), 64, twice=True), "data.augment=[crop(padding=3),mixup]")
    lines = said.splitlines()
    assert lines[0].startswith("images    32 x 32 pixels in colours, scaled to fill it, what is beyond cut off evenly")
    assert lines[0].endswith("files have 64 x 64 in the middle")
    assert "crop(padding=3" in lines[1] and "mixup" in lines[2]
    assert not harm


@pytest.mark.parametrize(("names", "warned"), [(("p", "q"), True), (("turn_left", "turn_right"), True)])
def test_flips_are_warned_of_where_names_are_of_mirror_images(tmp_path, names, warned):
    folder = draw_set(tmp_path / "set", names, 16, twice=True)
    assert any("mirror images" in line for line in told(folder, "data.augment=flip")[1]) is warned
    assert not told(folder, "data.augment=crop")[1]


def test_flips_are_warned_of_where_the_images_are_mirror_images_whatever_their_names(tmp_path):
    [line] = told(draw_set(tmp_path / "set", ("a", "c"), 16), "data.augment=flip")[1]
    assert "classes 'a' and 'c' may be mirror images" in line
    assert not told(draw_set(tmp_path / "other", ("a", "c"), 16, twice=True), "data.augment=flip")[1]


def test_images_that_shrink_more_than_four_times_are_warned_of_with_a_size_that_keeps_more(tmp_path):
    folder = draw_set(tmp_path / "set", ("a", "b"), 160, twice=True)
    [line] = told(folder, "data.augment=crop")[1]
    assert "shrunk 5.0 times" in line and "data.pixels=48" in line
    assert not told(folder, "data.augment=crop", "data.pixels=48")[1]
