"""Self-distillation (DINO): a model learns to give one answer to many views of an image, without any label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn

from heedful.data.collate import pick
from heedful.data.images import Picture
from heedful.data.images.decode import as_hwc
from heedful.data.readers.labelled_images import ImageReader
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking.overlay import Pictures
from heedful.looking.page import Figures, Samples
from heedful.metrics.knn import NEIGHBOURS, NeighbourAccuracy, neighbours, vote_of_nearest
from heedful.objectives.self_distillation import SelfDistillation
from heedful.pipelines.attention_over_image import overlays
from heedful.pipelines.image_preprocessing import ImageLearned, again, check_pictures
from heedful.pipelines.vision_pipeline import ImageVectors, image_vectors, look_at
from heedful.results import Vector
from heedful.tasks.task import Task
from heedful.tasks.vision.image_batches import READERS, ImageCollate
from heedful.views.finding import Finding
from heedful.views.image_classes import CLASSES
from heedful.views.learned_filters import GOES_ON, learned_of

SHOWN = 6  # pictures of a report with their neighbours
AMONG = 2000  # of so many they are the nearest


@dataclass(frozen=True)
class ViewsLearned(ImageLearned):
    """Images of which several views are learned from, each of one image alone."""

    @classmethod
    def fit(cls, splits: Splits[Picture], reader: ImageReader, seed: int) -> Self:
        made = super().fit(splits, reader, seed)
        if made.augment.mixes:
            raise Refusal(
                "data.augment mixes two images, and here views of one are to agree; leave mixup and cutmix out"
            )
        return made


def table(samples: Sequence[Picture], results: Sequence[Vector], learned: ImageLearned) -> Samples:
    """Images, and what their nearest neighbours are."""
    said = vote_of_nearest(vectors_of(results), [one.label for one in samples], learned.labels)
    return replace(CLASSES(samples, said, learned), header=("image", "class", "neighbours", "share"))


def vectors_of(results: Sequence[Vector]) -> Tensor:
    """Vectors as a tensor: B M."""
    return torch.tensor([one.values for one in results])


def nearest(model: nn.Module, samples: Sequence[Picture], results: Sequence[Vector], learned: ImageLearned) -> Finding:
    """The nearest neighbours of a few images, and what the model looks at."""
    near, _ = neighbours(vectors_of(results[:AMONG]))
    rows = [samples[at] for one in range(min(SHOWN, len(near))) for at in (one, *near[one].tolist())]
    shown = Pictures(
        "Nearest neighbours",
        tuple((one.label, as_hwc(one.pixels)) for one in rows),
        "First in each row an image, then those that it is taken to be like, the nearest first; each by its class.",
        along=1 + near.shape[1],
    )
    examples = [look_at(model, one.as_input, learned) for one in pick(samples[:AMONG], 3)]
    figures = Figures("What nobody named", (("neighbours", f"{NEIGHBOURS}", "vote on what an image is"), GOES_ON))
    more = [shown, *overlays(examples), *learned_of(model, [example.maps for example in examples])]
    return Finding(figures, "", "mean", tuple(more))


TASK = Task(
    name="self-distillation",
    readers=READERS,
    fit=ViewsLearned.fit,
    learned=ViewsLearned,
    encode=check_pictures,
    again=again,
    collate=ImageCollate(thrown=True),
    objective=SelfDistillation(),
    metrics=(NeighbourAccuracy(source=image_vectors),),
    watch="accuracy",
    pipeline=ImageVectors(),
    table=table,
    views=(nearest,),
    families=("dino",),
)
