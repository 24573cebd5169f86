"""Image batches (collation): pictures as they are learned from in an epoch, with their dice, become tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch

from heedful.data.collate import Batch, Collate
from heedful.data.images import Picture, pixels_of
from heedful.data.near_duplicates import Content
from heedful.data.readers.labelled_images import SETS, SHAPES, ImageFiles, PublicImages, Shapes
from heedful.data.readers.reader import FILES, Reader
from heedful.data.sample_dice import dice_of
from heedful.pipelines.image_preprocessing import ImageLearned

READERS: dict[str, type[Reader]] = {SHAPES: Shapes, **dict.fromkeys(SETS, PublicImages), FILES: ImageFiles}


class Varied(NamedTuple):
    """A picture as it is learned from in an epoch: with its dice, and another to be mixed with, where some are."""

    picture: Picture
    dice: int
    other: Picture
    other_dice: int


@dataclass(frozen=True)
class ImageCollate(Collate[ImageLearned]):
    """Images of one size; those that are varied, or of which a part is hidden, come with dice."""

    even: ClassVar[bool] = True

    thrown: bool = False  # dice, though nothing varies images: what is hidden or cut is another in every epoch

    def length(self, sample: Picture, learned: ImageLearned) -> int:
        return 1

    def source_of(self, sample: Picture) -> str:
        return sample.place

    def contents(self, sample: Picture) -> dict[str, Content]:
        return {"images": sample.content}

    def as_input(self, sample: Picture, learned: ImageLearned) -> str:
        return sample.as_input

    def augmented(self, samples: Sequence[Picture], epoch: int, learned: ImageLearned) -> Sequence[Any]:
        if not (learned.augment or self.thrown):
            return samples
        dice = dice_of(learned.augment.seed, epoch, [one.at for one in samples]).tolist()
        # Each is mixed with its neighbour in the step, however the step is dealt out among processes.
        return [Varied(one, dice[at], samples[at - 1], dice[at - 1]) for at, one in enumerate(samples)]

    def batch(self, samples: Sequence[Picture | Varied], learned: ImageLearned) -> Batch:
        varied = [one for one in samples if isinstance(one, Varied)]
        made = batch_of_pictures([one.picture if isinstance(one, Varied) else one for one in samples], learned)
        if varied:
            made["dice"] = torch.tensor([one.dice for one in varied])
        if varied and learned.augment.mixes:
            others = batch_of_pictures([one.other for one in varied], learned)
            made |= {f"other_{name}": tensor for name, tensor in others.items()}
            made["other_dice"] = torch.tensor([one.other_dice for one in varied])
        return made


class ImageCollateOneByOne(ImageCollate):
    """Images for a model that is another one at every step, so that nothing can be captured."""

    even: ClassVar[bool] = False


def batch_of_pictures(pictures: Sequence[Picture], learned: ImageLearned) -> Batch:
    """Pictures in levels from 0 to 255, and their answers."""
    answers = torch.tensor([learned.number[one.label] for one in pictures])
    return {"images": torch.from_numpy(pixels_of(pictures)), "answer": answers}
