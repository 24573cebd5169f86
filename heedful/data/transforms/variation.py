"""Variations (transforms): each draws a move from the dice of images, and may change their shades."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from heedful.data.transforms.moves import Move, Size


class Variation:
    """Transform of images (B C H W, from 0 to 1), each by its own dice (B); their classes stay what they are.

    It draws a move, by which all that lies on an image goes with it, and then changes shades: one of these, or both.
    """

    shades: ClassVar[bool] = False  # whether it takes channels for shades: grey, or red, green and blue

    @property
    def parts(self) -> tuple[Variation, ...]:
        """The variations that it is made of, one after the other: itself alone, for most."""
        return (self,)

    def draw(self, dice: Tensor, size: Size) -> Move:
        """Where all of images of a size goes."""
        return Move(size)

    def shaded(self, images: Tensor, dice: Tensor) -> Tensor:
        """Images with other shades, where they are."""
        return images

    def __call__(self, images: Tensor, dice: Tensor) -> Tensor:
        """The images, varied."""
        for part in self.parts:
            high, wide = images.shape[-2:]
            images = part.shaded(part.draw(dice, (high, wide)).pixels(images), dice)
        return images


def share(name: str, value: float) -> float:
    """The value itself, where it is a share."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name}={value} is not a share; choose one from 0 to 1")
    return value
