"""Image models from elsewhere: their output decides which task they are used for."""

from __future__ import annotations

from pathlib import Path

from heedful.data.images.limits import Size
from heedful.models.vision.image_spec import ClassifierSpec, ImageSpec
from heedful.tasks.vision.image_classification import TASK as IMAGES
from heedful.tasks.vision.masked_autoencoding import TASK as REBUILDING
from heedful.tasks.vision.self_distillation import TASK as AGREEING
from heedful.tasks.work import Work


class Seeing:
    """Use of models of images from elsewhere."""

    def of(self, folder: Path, spec: ImageSpec) -> Work:
        """Classification for a model with classes, rebuilding for a masked autoencoder, and vectors for any other."""
        size = Size(spec.channels, spec.high, spec.wide)
        if isinstance(spec, ClassifierSpec) and spec.classes:
            task, labels = IMAGES, spec.labels or [str(at) for at in range(spec.classes)]
        else:
            task, labels = (REBUILDING if spec.family in REBUILDING.families else AGREEING), []
        return Work(task, task.learned.unscaled(labels, size).adopted(spec))  # type: ignore[attr-defined]


SEEING = Seeing()
