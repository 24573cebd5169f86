"""Readers of images, each with a class: drawn shapes, public sets, and a user's own folders and lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator

from heedful.data.formats.class_folders import sides_of
from heedful.data.images import sources
from heedful.data.images.gallery import Picture
from heedful.data.images.held_pictures import held_splits, resize_held
from heedful.data.images.limits import Size
from heedful.data.near_duplicates import MOST
from heedful.data.parallel_sample import Column
from heedful.data.public import download as public
from heedful.data.readers.reader import FILES, Divided, Made, Many, Reader, SampleFiles
from heedful.data.splits import Splits, open_splits
from heedful.data.toys.drawn_shapes import shapes
from heedful.errors import Refusal

if TYPE_CHECKING:
    from heedful.inputs.image_input import Processor

OUTER = re.compile(r",\s*(?![^()]*\))")  # commas between words; YAML cuts a list at those within a word's brackets too
SHAPES = "shapes"
SETS = ("cifar10", "fashion-mnist")  # public ones
SIDE = 32  # pixels along each side where nothing is said


class Augmented(BaseModel):
    """The key of data augmentation."""

    augment: list[str] = []
    """How images are varied in training: `flip`, `crop(padding=4)`, `trivial`, `mixup`, `cutmix` and others."""

    @field_validator("augment", mode="before")
    @classmethod
    def _a_word_will_do_and_is_whole(cls, given: Any) -> Any:
        pieces = [given] if isinstance(given, str) else given
        if not isinstance(pieces, list) or not pieces or not all(isinstance(piece, str) for piece in pieces):
            return given
        return OUTER.split(", ".join(pieces))


class ImageReader(Augmented, Reader):
    """Reader of images: the keys of their size, which a trained model sets to its own."""

    pixels: Annotated[list[Many], Field(min_length=2, max_length=2)] | None = None
    """The size to which images are brought, as `[height, width]` or one number; 32 by 32 if unset."""
    channels: Annotated[int, Field(ge=1, le=512)] | None = None
    """How files are read: 1 is grey, 3 is colour, 2 and 4 add transparency; `.npy` arrays may have any number."""

    @field_validator("pixels", mode="before")
    @classmethod
    def _a_side_will_do(cls, given: Any) -> Any:
        return [given, given] if isinstance(given, int | str) else given

    @property
    def size(self) -> Size:
        """Of what shape files are made, and shapes drawn."""
        high, wide = self.pixels or (SIDE, SIDE)
        return Size(self.channels or 3, high, wide)

    def read(self, seed: int) -> Splits[Picture]:
        return self.pictures(seed, None)

    def pictures(self, seed: int, processor: Processor | None) -> Splits[Picture]:
        """Pictures to learn from, to choose by and to test on, brought to their shape as a processor says."""
        raise NotImplementedError


@dataclass(frozen=True)
class Processed:
    """Images as a model from elsewhere reads them: its own processor brings them to their shape."""

    reader: ImageReader
    processor: Processor | None

    def read(self, seed: int) -> Splits[Picture]:
        """The samples of the reader."""
        return self.reader.pictures(seed, self.processor)

    open_samples = read


class Shapes(ImageReader, Made):
    """Circles, crosses, rings, squares and triangles, drawn on the fly."""

    def pictures(self, seed: int, processor: Processor | None) -> Splits[Picture]:
        return shapes(self.samples, self.held_out, seed, self.size, processor)


class Halved(Divided, ImageReader):
    """Reader of sets that may come in two halves, some of the first held out to choose by."""

    def halves(self, found: sources.Published, processor: Processor | None, count: int) -> Splits[Picture]:
        """A public set as its files have it, so many of those to learn from held out to choose by."""
        own, wanted = found.size, self.size
        sized = self.pixels and not processor
        if (sized and own[1:] != wanted[1:]) or (self.channels and own.channels != self.channels):
            said = f"{found.folder} has images of {sources.shape(own)}"
            raise Refusal(f"{said}; leave data.pixels and data.channels out, or set them so")
        return sources.held_out(*found.pictures(processor), self.name, count, self.split_seed)


class PublicImages(Halved):
    """A public set of images, as `heedful data get` fetches it."""

    held_out: Many = 2_000
    """How many training images are held out for validation, and at most a tenth of them."""

    def pictures(self, seed: int, processor: Processor | None) -> Splits[Picture]:
        folder = public.home(self.name)
        found = sources.published_in(folder, clothes=self.name == "fashion-mnist")
        if found is None:
            raise Refusal(f"{folder} holds no {self.name}; fetch it with `heedful data get {self.name}`")
        return self.halves(found, processor, self.held_out)


class ImageFiles(Halved, SampleFiles):
    """Your own images: a folder with a folder for each class, a CSV or JSONL of paths and labels, or a public set."""

    broken: Literal["refuse", "skip"] = "refuse"
    """What to do with images that cannot be read: `refuse` to start, or `skip` them and name each."""
    image: Column | None = None
    """The column of the paths in a list of images, by name or number."""
    label: Column | None = None
    """The column of the classes in a list of images, by name or number."""

    def from_memory(self, samples: Any) -> Splits[Picture]:
        """Images, each with its label, that lie in memory; the first says their size where no key does."""
        return held_splits(samples, self.pixels, self.channels, self.cut)

    def pictures(self, seed: int, processor: Processor | None) -> Splits[Picture]:
        if self.held is not None:
            return resize_held(self.held, self.size, processor)
        folder, count = Path(self.name), self.held_out or MOST
        found = sources.published_in(folder)
        if found is not None:
            return self.halves(found, processor, count)

        def read(place: Any) -> list[Picture]:
            return sources.read_pictures(place, self.size, self.broken, processor, (self.image, self.label))

        if self.name != FILES and (sides := sides_of(folder)):
            return sources.of_halves(sides, read, self.name, count, self.split_seed)
        return open_splits(self, read, lambda all, what: sources.apart(all, what, self.cut), (SHAPES, *SETS))
