"""The pictures of the README and the guides: trains the models on drawn and invented data, and draws where they look.

`python -m tools.docs_pictures docs` writes docs/attention.png and docs/pictures/, and trains what is not in runs/ yet.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops

from heedful.cli import main as heedful
from heedful.data.images.decode import Size
from heedful.data.toys.drawn_shapes import SHAPES, draw
from heedful.looking import overlay
from heedful.training.run import usable

RUNS = {  # a recipe, and what is changed in it: the vision transformer has learned enough by then
    "reverse": (),
    "answer": (),
    "translate": (),
    "vit": ("training.steps=600",),
}
QUESTION = "where does anna live ?\tanna works in cairo . anna lives in bremen . anna was born in jena ."
SENTENCE = "A small dog runs near a red house ."


def call(*words: object) -> None:
    """Calls the program, and goes on if it succeeds."""
    try:
        heedful([str(word) for word in words])
    except SystemExit as left:
        if left.code:
            raise


def cross(path: Path) -> None:
    """Draws the shape that is looked at: a cross, which the model has not seen."""
    (drawn,) = draw(np.array([list(SHAPES).index("cross")]), Size(3, 32, 32), np.random.default_rng(4))
    Image.fromarray(drawn.transpose(1, 2, 0)).save(path)


def heads_over_image(runs: Path, out: Path) -> None:
    """Draws where the class token looks, head by head, in the second layer of the vision transformer."""
    model, task = usable(runs / "vit")
    sections = task.look(model, str(runs / "cross.png")).sections
    overlay.draw([one for one in sections if one.title == "encoder.blocks.1.attention"], out)
    drawn = Image.open(out).convert("RGB")
    drawn.crop(ImageChops.invert(drawn).getbbox()).save(out)  # without the room for more heads


def main() -> None:
    """Trains what has not been trained, and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    told = parser.parse_args()
    for recipe, changes in RUNS.items():
        if not (told.runs / recipe / "result.json").exists():
            call("train", recipe, *changes, "--out", told.runs / recipe)
    pictures = told.folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    cross(told.runs / "cross.png")
    looks = {
        told.folder / "attention.png": ("reverse", "attention2017", "decoder.blocks.0.cross"),
        pictures / "text.png": ("answer", QUESTION, "encoder.blocks.0.attention"),
    }
    for out, (run, given, layer) in looks.items():
        call("look", told.runs / run, given, "--layer", layer, "--out", out)
    heads_over_image(told.runs, pictures / "image.png")
    call("align", told.runs / "translate", SENTENCE, "--out", pictures / "alignment.png")


if __name__ == "__main__":
    main()
