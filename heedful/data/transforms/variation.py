"""What a variation is."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor


class Variation:
    """Changes images (B C H W, from 0 to 1), each by its own dice (B); their classes stay what they are."""

    shades: ClassVar[bool] = False  # whether it takes channels for shades: grey, or red, green and blue

    def __call__(self, images: Tensor, dice: Tensor) -> Tensor:
        """The images, varied."""
        raise NotImplementedError


def share(name: str, value: float) -> float:
    """The value itself, where it is a share."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name}={value} is no share; choose one from 0 to 1")
    return value


def each(x: Tensor) -> Tensor:
    """A number for each image as it goes with images: B -> B 1 1 1."""
    return x[:, None, None, None]
