"""Models of images that were learned elsewhere: what they are asked follows from what they answer."""

from __future__ import annotations

from heedful.data.images.decode import Size
from heedful.models.vision.image_spec import ClassifierSpec, ImageSpec
from heedful.models.vision.mae import MAESpec
from heedful.tasks.agreeing import Agreeing
from heedful.tasks.images import Images
from heedful.tasks.rebuilding import Rebuilding


def seeing(spec: ImageSpec) -> Images:
    """Classes where a model tells them, what is hidden where it rebuilds it, and else what it makes of an image."""
    size = Size(spec.channels, spec.high, spec.wide)
    if isinstance(spec, ClassifierSpec) and spec.classes:
        task = Images(spec.labels or [str(at) for at in range(spec.classes)], size)
    else:
        task = Rebuilding((), size) if isinstance(spec, MAESpec) else Agreeing((), size)
    task.adopt(spec)
    return task
