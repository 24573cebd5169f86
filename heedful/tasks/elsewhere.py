"""Models of images that were learned elsewhere: what they are asked follows from what they answer."""

from __future__ import annotations

import os
from pathlib import Path

from heedful.checkpoints.reading import read_json
from heedful.data.images.decode import Size
from heedful.models.images import ImageSpec
from heedful.models.mae import MAESpec
from heedful.tasks.agreeing import Agreeing
from heedful.tasks.images import Images
from heedful.tasks.rebuilding import Rebuilding

CONFIG = "config.json"


def seeing(spec: ImageSpec, folder: Path) -> Images:
    """Classes where a model tells them, what is hidden where it rebuilds it, and else what it makes of an image."""
    size = Size(spec.channels, spec.high, spec.wide)
    if spec.classes:
        return Images(labels(folder, spec.classes), size)
    return Rebuilding((), size) if isinstance(spec, MAESpec) else Agreeing((), size)


def labels(folder: Path, count: int) -> list[str]:
    """The names of classes, as a config.json has them; their numbers where it names none, or not all."""
    there = read_json(folder / CONFIG) if os.path.lexists(folder / CONFIG) else {}
    named = there.get("id2label")
    if isinstance(named, dict) and set(named) == {str(at) for at in range(count)}:
        return [str(named[str(at)]) for at in range(count)]
    return [str(at) for at in range(count)]
