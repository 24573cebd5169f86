"""Samples (examples) with structure: records of typed fields, of which those that lie on an image move with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from heedful.errors import Refusal

if TYPE_CHECKING:
    from heedful.data.transforms.moves import Move


class Spatial:
    """Spatial field: it lies on the plane of an image, and says how it is moved with it."""

    def moved(self, move: Move) -> Self:
        """The same after a geometric transform."""
        kind = type(self).__name__
        raise Refusal(
            f"a {kind} does not say how it is moved; give it a method `moved(move)`, or leave data.augment out"
        )


@dataclass(frozen=True, eq=False)
class PerObject:
    """Field of objects: it says one thing of each; all such fields of a sample have the same objects in one order."""

    values: Tensor  # N, and whatever is said of each

    def present(self) -> Tensor | None:
        """Which objects are still there (N), where it can tell."""
        return None

    def only(self, which: Tensor) -> Self:
        """The same of some objects alone."""
        return replace(self, values=self.values[which])


@dataclass(frozen=True, eq=False)
class Image(Spatial):
    """Image: numbers from 0 to 1, C H W."""

    pixels: Tensor

    def moved(self, move: Move) -> Self:
        return replace(self, pixels=move.pixels(self.pixels))


@dataclass(frozen=True, eq=False)
class Labels(PerObject):
    """Class of each object: N."""


@dataclass(frozen=True, eq=False)
class Masks(Spatial, PerObject):
    """Instance masks: N H W, true where an object is."""

    def moved(self, move: Move) -> Self:
        return replace(self, values=move.masks(self.values))

    def present(self) -> Tensor:
        return self.values.flatten(1).any(1)


@dataclass(frozen=True, eq=False)
class BoundingBoxes(Spatial, PerObject):
    """Bounding boxes: N 4, left, top, right and bottom in pixels; what leaves the image is cut off."""

    def moved(self, move: Move) -> Self:
        corners = self.values[:, [0, 1, 2, 1, 2, 3, 0, 3]]  # clockwise
        return replace(self, values=around(move.points(corners.view(-1, 2)).view(-1, 4, 2), move.size))

    def present(self) -> Tensor:
        return (self.values[:, 2:] > self.values[:, :2]).all(1)

    def masks(self, size: tuple[int, int]) -> Masks:
        """The boxes drawn on an image of so many rows and columns, each filled."""
        y, x = (torch.arange(side) + 0.5 for side in size)
        left, top, right, bottom = self.values.T[..., None, None]
        return Masks((x >= left) & (x < right) & (y[:, None] >= top) & (y[:, None] < bottom))


class Sample(Mapping[str, Any]):
    """Sample (example): an open record of fields that belong together; a field's type says what moves it.

    Its place among all samples is what its dice are made of. An input to a pipeline is a sample without an answer.
    """

    def __init__(self, place: int = 0, **fields: Any) -> None:
        bare = next((name for name, field in fields.items() if isinstance(field, Tensor | np.ndarray)), None)
        if bare is not None:
            cure = f"give it a kind, such as {bare}=BoundingBoxes(...), or one of your own"
            raise Refusal(f"{bare} is a bare array, which does not say whether it moves with an image; {cure}")
        self.place, self.fields = place, MappingProxyType(fields)

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def but(self, **fields: Any) -> Sample:
        """The same with other fields."""
        return Sample(self.place, **{**self.fields, **fields})

    @property
    def image(self) -> Image:
        """Its image: the one field of that kind."""
        found = [field for field in self.values() if isinstance(field, Image)]
        if len(found) != 1:
            raise Refusal(f"a sample has {len(found)} images, and one is varied; give it one field of kind Image")
        return found[0]

    def shown(self, pixels: Tensor) -> Sample:
        """The same with other pixels at the same places: C H W."""
        return self.but(**{name: replace(one, pixels=pixels) for name, one in self.items() if isinstance(one, Image)})

    def moved(self, move: Move) -> Sample:
        """The same with all that lies on its image moved alike, without the objects that left it."""
        moved = {name: field.moved(move) for name, field in self.items() if isinstance(field, Spatial)}
        return self.but(**moved).present()

    def present(self) -> Sample:
        """The same without the objects that a field tells to be gone, in all fields of objects at once."""
        each = {name: field for name, field in self.items() if isinstance(field, PerObject)}
        told = [there for field in each.values() if (there := field.present()) is not None]
        if not told:
            return self
        return self.but(**{name: field.only(torch.stack(told).all(0)) for name, field in each.items()})


def around(shapes: Tensor, size: tuple[int, int]) -> Tensor:
    """The smallest boxes around what of convex shapes of four corners (N 4 2) lies on an image: N 4, or zeros."""
    most = shapes.new_tensor([size[1], size[0]])
    ends = shapes.roll(-1, 1)
    inside = ((shapes >= 0) & (shapes <= most)).all(-1)
    found = [(shapes, inside), corners_within(shapes, ends, most)]
    found += [crossings(shapes, ends, axis, line, most) for axis in (0, 1) for line in (0.0, float(most[axis]))]
    points, there = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
    low = torch.where(there[..., None], points, torch.inf).amin(1)
    high = torch.where(there[..., None], points, -torch.inf).amax(1)
    return torch.where(there.any(1, keepdim=True), torch.cat((low, high), 1), 0.0)


def corners_within(starts: Tensor, ends: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """The corners of an image (N 4 2), and which of them lie in shapes whose sides start and end so (N 4 2)."""
    corners = most * torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]], dtype=most.dtype)
    sides, to = (ends - starts)[:, :, None], corners - starts[:, :, None]  # N 4 4 2
    turns = sides[..., 0] * to[..., 1] - sides[..., 1] * to[..., 0]
    within = ((turns >= 0).all(1) | (turns <= 0).all(1)) & (turns != 0).any(1)
    return corners.expand(len(starts), -1, -1), within


def crossings(starts: Tensor, ends: Tensor, axis: int, line: float, most: Tensor) -> tuple[Tensor, Tensor]:
    """Where sides (N 4 2) cross the line of an image's edge (N 4 2), and which do within that edge."""
    way = ends - starts
    share = (line - starts[..., axis]) / way[..., axis]  # of a side, until it crosses
    other = starts[..., 1 - axis] + share * way[..., 1 - axis]
    there = (share >= 0) & (share <= 1) & (other >= 0) & (other <= most[1 - axis])
    place = torch.full_like(other, line)
    return torch.stack((place, other) if axis == 0 else (other, place), -1), there


__all__ = ["BoundingBoxes", "Image", "Labels", "Masks", "PerObject", "Sample", "Spatial"]
