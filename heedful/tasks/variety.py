"""How images are varied while they are learned from: words become variations, and a batch other images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.data.collate import Batch
from heedful.data.transforms import MIXES, VARIATIONS, Mix, Variation, draw
from heedful.errors import Refusal
from heedful.models import part_words

SHADES = (1, 3)  # channels that are shades: grey, or red, green and blue
CHOICE = 30  # purpose of dice: which way two images are mixed


class Variety:
    """Variations one after the other, then one way of mixing, for a batch on any device: `["flip", "mixup"]`."""

    def __init__(self, given: Sequence[str], seed: int = 0) -> None:
        known = {**VARIATIONS, **MIXES}
        made = [part_words.choose("augmentation", word, known) for word in given]
        self.variations: list[Variation] = [one for one in made if isinstance(one, Variation)]
        self.mixes: list[Mix] = [one for one in made if isinstance(one, Mix)]
        self.seed = seed
        self.always = False  # whether images have dice though nothing here varies them

    def suits(self, channels: int) -> None:
        """Refuses changes of shades where channels are not grey, or red, green and blue."""
        for word, kind in VARIATIONS.items():
            if kind.shades and channels not in SHADES and any(type(one) is kind for one in self.variations):
                others = ", ".join([*(name for name, one in VARIATIONS.items() if not one.shades), *MIXES])
                said = f"{word} changes shades of grey or of red, green and blue, and images have {channels} channels"
                raise Refusal(f"data.augment: {said}; use some of {others}")

    def __bool__(self) -> bool:
        return bool(self.variations or self.mixes or self.always)

    @torch.no_grad()
    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The images of a batch from 0 to 1, varied where they have dice, and the share of the first where mixed."""
        images = batch["images"].to(torch.float32) / 255
        if "dice" not in batch:
            return images, None
        with torch.autocast(images.device.type, enabled=False):  # bfloat16 cannot tell a pixel from the next
            images = self.varied(images, batch["dice"])
            if not self.mixes:
                return images, None
            others = self.varied(batch["other_images"].to(torch.float32) / 255, batch["other_dice"])
            return self.mixed(images, others, batch["dice"])

    def varied(self, images: Tensor, dice: Tensor) -> Tensor:
        """Images by all variations in turn."""
        for variation in self.variations:
            images = variation(images, dice)
        return images

    def mixed(self, images: Tensor, others: Tensor, dice: Tensor) -> tuple[Tensor, Tensor]:
        """Each image by one of the ways of mixing, drawn by chance, and the share of the first."""
        which = (draw(dice, 1, CHOICE)[:, 0] * len(self.mixes)).long()
        made, share = self.mixes[0](images, others, dice)
        for at, mix in enumerate(self.mixes[1:], 1):
            other, of_other = mix(images, others, dice)
            made = torch.where((which == at)[:, None, None, None], other, made)
            share = torch.where(which == at, of_other, share)
        return made, share
