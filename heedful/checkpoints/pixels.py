"""What is done to a picture before a model sees it, as others tell it: preprocessor_config.json."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from heedful.checkpoints.reading import read_json
from heedful.models.images import ImageSpec

FILE = "preprocessor_config.json"
SCALE = ("image_mean", "image_std")
BICUBIC = 3  # PIL's number of the filter that `heedful.data.images` resizes with


def read(folder: Path) -> dict[str, Any]:
    """The mean and the deviation of pixels, where a folder says them."""
    there = read_json(folder / FILE) if os.path.lexists(folder / FILE) else {}
    keys = SCALE if there.get("do_normalize", True) else ()
    return {key: there[key] for key in keys if there.get(key) is not None}


def write(spec: ImageSpec, folder: Path) -> None:
    """What a spec says of pictures, for transformers' image processors."""
    (folder / FILE).write_text(json.dumps(told(spec), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def told(spec: ImageSpec) -> dict[str, Any]:
    """A picture fills the shape, and its middle is kept. That can be said of squares; others are filled by stretching.

    Of the processors that are known to every version, BiT's is the one that does no more and no less.
    """
    shape = {"height": spec.high, "width": spec.wide}
    return {
        "image_processor_type": "BitImageProcessor",
        "do_convert_rgb": spec.channels == 3,  # where there is one channel, pictures must be given in grey
        "do_resize": True,
        "size": {"shortest_edge": spec.high} if spec.high == spec.wide else shape,
        "resample": BICUBIC,
        "do_center_crop": True,
        "crop_size": shape,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": spec.mean is not None,
        **(dict(zip(SCALE, (spec.mean, spec.deviation), strict=True)) if spec.mean else {}),
    }
