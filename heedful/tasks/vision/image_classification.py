"""Image classification: of which class an image is."""

from __future__ import annotations

from heedful.metrics.accuracy import Accuracy
from heedful.objectives.image_classification import ImageClassification
from heedful.pipelines.image_preprocessing import ImageClasses, again, check_pictures
from heedful.pipelines.vision_pipeline import ImageClassifying
from heedful.tasks.task import Task
from heedful.tasks.vision.image_batches import READERS, ImageCollate
from heedful.views.image_classes import CLASSES, taken_for

TASK = Task(
    name="image-classification",
    readers=READERS,
    fit=ImageClasses.fit,
    learned=ImageClasses,
    encode=check_pictures,
    again=again,
    collate=ImageCollate(),
    objective=ImageClassification(),
    metrics=(Accuracy(),),
    watch="accuracy",
    pipeline=ImageClassifying(),
    table=CLASSES,
    views=(taken_for,),
    families=("vit", "beit", "convit", "autoformer", "swin", "resnet", "lenet"),
)
