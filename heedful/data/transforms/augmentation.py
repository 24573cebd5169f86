"""Data augmentation: how images are varied while they are learned from, whole batches on any device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.data.collate import Batch
from heedful.data.sample_dice import dice_of, draw
from heedful.data.transforms.mixing import Mix
from heedful.data.transforms.spatial_sample import Sample
from heedful.data.transforms.variation import Variation
from heedful.errors import Refusal

CHOICE = 30  # purpose of dice: which way two images are mixed


@dataclass(frozen=True)
class Augmentation:
    """Data augmentation: variations one after the other, then one way of mixing, for a batch on any device."""

    variations: tuple[Variation, ...] = ()
    mixes: tuple[Mix, ...] = ()
    seed: int = 0

    def __bool__(self) -> bool:
        return bool(self.variations or self.mixes)

    @torch.no_grad()
    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The images of a batch from 0 to 1, varied where they have dice, and the share of the first where mixed."""
        images = levels(batch["images"])
        if "dice" not in batch:
            return images, None
        with torch.autocast(images.device.type, enabled=False):  # bfloat16 cannot tell a pixel from the next
            images = self.varied(images, batch["dice"])
            if not self.mixes:
                return images, None
            others = self.varied(levels(batch["other_images"]), batch["other_dice"])
            return self.mixed(images, others, batch["dice"])

    def varied(self, images: Tensor, dice: Tensor) -> Tensor:
        """Images by all variations in turn."""
        for variation in self.variations:
            images = variation(images, dice)
        return images

    def of_sample(self, sample: Sample, epoch: int) -> Sample:
        """A sample as it is learned from in an epoch: its boxes, masks and all that lies on its image move with it."""
        if self.mixes:
            raise Refusal(
                "data.augment mixes two images, and boxes or masks of two cannot be; leave mixup and cutmix out"
            )
        dice = torch.from_numpy(dice_of(self.seed, epoch, [sample.place]))
        for part in (part for variation in self.variations for part in variation.parts):
            high, wide = sample.image.pixels.shape[-2:]
            sample = sample.moved(part.draw(dice, (high, wide)))
            sample = sample.shown(part.shaded(sample.image.pixels[None], dice)[0])
        return sample

    def mixed(self, images: Tensor, others: Tensor, dice: Tensor) -> tuple[Tensor, Tensor]:
        """Each image by one of the ways of mixing, drawn by chance, and the share of the first."""
        which = (draw(dice, 1, CHOICE)[:, 0] * len(self.mixes)).long()
        made, share = self.mixes[0](images, others, dice)
        for at, mix in enumerate(self.mixes[1:], 1):
            other, of_other = mix(images, others, dice)
            made = torch.where((which == at)[:, None, None, None], other, made)
            share = torch.where(which == at, of_other, share)
        return made, share


def levels(images: Tensor) -> Tensor:
    """Levels from 0 to 255 as numbers from 0 to 1."""
    return images.to(torch.float32) / 255
