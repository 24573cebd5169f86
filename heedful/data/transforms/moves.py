"""Geometric transforms (moves): where pixels, masks and points of each image go, drawn once and the same for all."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, pad

Size = tuple[int, int]  # height and width


def each(x: Tensor) -> Tensor:
    """A number for each image as it goes with images: B -> B 1 1 1."""
    return x[:, None, None, None]


@dataclass(frozen=True)
class Move:
    """Geometric transform of a batch of images, or of one; this one leaves all where it is.

    Images, masks and points are given with an axis for the batch or, of one image, without it.
    """

    source: Size  # of images before

    @property
    def size(self) -> Size:
        """Of images afterwards."""
        return self.source

    def __getitem__(self, at: int) -> Self:
        """The move of one image of the batch."""
        own: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        alone: dict[str, Any] = {key: x[at : at + 1] for key, x in own.items() if isinstance(x, Tensor)}
        return replace(self, **alone)

    def pixels(self, x: Tensor) -> Tensor:
        """Images of any channels: B C H W -> B C h w."""
        return self._pixels(x) if x.dim() == 4 else self._pixels(x[None])[0]

    def masks(self, x: Tensor) -> Tensor:
        """Masks, true where something is; from outside nothing comes in: B N H W -> B N h w."""
        return self._masks(x) if x.dim() == 4 else self._masks(x[None])[0]

    def points(self, x: Tensor) -> Tensor:
        """Points in pixels, right and down from the corner of the image, which may leave it: B N 2 -> B N 2."""
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        return self._points(x) if x.dim() == 3 else self._points(x[None])[0]

    def _pixels(self, x: Tensor) -> Tensor:
        return x

    def _masks(self, x: Tensor) -> Tensor:
        return self._pixels(x)

    def _points(self, x: Tensor) -> Tensor:
        return x


@dataclass(frozen=True)
class Mirror(Move):
    """Horizontal flip of some images: B."""

    which: Tensor

    def _pixels(self, x: Tensor) -> Tensor:
        return torch.where(each(self.which), x.flip(-1), x)

    def _points(self, x: Tensor) -> Tensor:
        other = torch.stack((self.source[1] - x[..., 0], x[..., 1]), -1)
        return torch.where(self.which[:, None, None], other, x)


@dataclass(frozen=True)
class Shift(Move):
    """Random crop of padded images: the place in them that becomes the upper left corner, down and right (B 2)."""

    first: Tensor
    padding: int
    reflect: bool

    def _pixels(self, x: Tensor) -> Tensor:
        rows, columns = self.places()
        if not self.reflect:
            return self.taken(pad(x, (self.padding,) * 4), rows, columns)
        high, wide = self.source
        return self.taken(x, mirror_places(rows - self.padding, high), mirror_places(columns - self.padding, wide))

    def _masks(self, x: Tensor) -> Tensor:
        return self.taken(pad(x, (self.padding,) * 4), *self.places())

    def _points(self, x: Tensor) -> Tensor:
        return x + (self.padding - self.first.flip(1))[:, None]

    def places(self) -> tuple[Tensor, Tensor]:
        """The rows (B H) and columns (B W) of padded images that are shown."""
        high, wide = (torch.arange(side, device=self.first.device) for side in self.source)
        return self.first[:, :1] + high, self.first[:, 1:] + wide

    def taken(self, around: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Rows and columns of images, or of what is around them."""
        at = torch.arange(len(around), device=around.device)
        return around[at[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Affine(Move):
    """Affine map of some images, all where none is named: where each place is looked up, from -1 to 1 (B 2 3).

    What lies outside of an image is its edge, drawn out, or a shade.
    """

    matrix: Tensor
    to: Size | None = None
    which: Tensor | None = None
    outside: float | None = None

    @property
    def size(self) -> Size:
        return self.to or self.source

    def _pixels(self, x: Tensor) -> Tensor:
        return self.chosen(sample_pixels(x, self.matrix, self.outside, self.size), x)

    def _masks(self, x: Tensor) -> Tensor:
        places = looked_up(self.matrix, self.size, torch.float32)
        return self.chosen(grid_sample(x.float(), places, "nearest", align_corners=False) > 0.5, x)

    def _points(self, x: Tensor) -> Tensor:
        before, after = (x.new_tensor([wide, high]) for high, wide in (self.source, self.size))
        back = torch.linalg.inv(self.matrix[..., :2]).to(x.dtype)
        there = (2 * x / before - 1 - self.matrix[:, None, :, 2].to(x.dtype)) @ back.mT
        made = (there + 1) / 2 * after
        return made if self.which is None else torch.where(self.which[:, None, None], made, x)

    def chosen(self, made: Tensor, x: Tensor) -> Tensor:
        """The new images where they are named, and the others as they are."""
        return made if self.which is None else torch.where(each(self.which), made, x)


def mirror_places(places: Tensor, side: int) -> Tensor:
    """Places beyond the ends of a side, back from them as from mirrors, however far; the ends themselves once."""
    turn = max(1, 2 * (side - 1))
    return torch.minimum(places % turn, turn - places % turn)


def sample_pixels(images: Tensor, matrix: Tensor, outside: float | None = None, size: Size | None = None) -> Tensor:
    """Each pixel from where its matrix (B 2 3) says, from -1 to 1; what lies outside is the edge, or a shade."""
    places = looked_up(matrix, size or (images.shape[-2], images.shape[-1]), images.dtype)
    if outside is None:
        return grid_sample(images, places, padding_mode="border", align_corners=False)
    return grid_sample(images - outside, places, align_corners=False) + outside


def looked_up(matrix: Tensor, size: Size, dtype: torch.dtype) -> Tensor:
    """Where each pixel of an image of a size is looked up: B 2 3 -> B h w 2."""
    high, wide = size
    y, x = (((torch.arange(n, device=matrix.device) + 0.5) * 2 / n - 1).to(dtype) for n in (high, wide))
    grid = torch.stack((x.expand(high, wide), y[:, None].expand(high, wide), torch.ones_like(x).expand(high, wide)), -1)
    return torch.einsum("hwk,bck->bhwc", grid, matrix.to(dtype))


def affine(shears: tuple[Tensor, Tensor], turn: Tensor, moves: tuple[Tensor, Tensor], aspect: float) -> Tensor:
    """The matrices (B 2 3) that look up pixels of images sheared, turned clockwise and moved (in half sides).

    Shears and moves are across, then down; `aspect` is the height over the width.
    """
    (across, down), cos, sin = shears, turn.cos(), turn.sin()
    first = (cos + sin * down, (sin + cos * across) * aspect, moves[0])
    second = ((cos * down - sin) / aspect, cos - sin * across, moves[1])
    return torch.stack((*first, *second), 1).view(-1, 2, 3)
