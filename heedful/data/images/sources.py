"""Where pictures lie: public sets by their files, and a user's own folders and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from heedful.data import line_files
from heedful.data.formats.class_folders import Classes
from heedful.data.formats.named_columns import column, named_rows
from heedful.data.images import mnist_and_cifar
from heedful.data.images.decode import ENDINGS, Size
from heedful.data.images.gallery import Gallery, Picture, of_files
from heedful.data.line_files import is_table
from heedful.data.near_duplicates import Cut, by_side, digests, held_together
from heedful.data.parallel_sample import Column, Sides
from heedful.data.splits import Splits, divide_samples, learn_unseen
from heedful.errors import Refusal
from heedful.safe.sealed_folders import sum_of

if TYPE_CHECKING:
    from heedful.inputs.image_input import Processor

Names = tuple[Column | None, Column | None]  # of the columns of paths and labels
FILE, LABEL = ("path", "file", "image", "filename", "file_name"), ("label", "class", "target")  # columns of a list


@dataclass(frozen=True)
class Published:
    """A public set that comes in two halves: its folder, its pictures by half, and the names of its classes."""

    folder: Path
    found: mnist_and_cifar.Halves
    names: list[str]

    @property
    def size(self) -> Size:
        """The shape of its images, which is one in both halves."""
        own, tested = (self.found[half][0].shape[1:] for half in ("train", "test"))
        if own != tested:
            said = f"{self.folder} has images of {shape(own)} to learn from and of {shape(tested)} to test on"
            raise Refusal(f"{said}; use one size")
        return Size(*own)

    def pictures(self, processor: Processor | None) -> tuple[list[Picture], list[Picture]]:
        """The pictures to learn from, and to test on."""
        made = []
        for half, (pixels, labels) in self.found.items():
            gallery, place = Gallery(pixels, processor), f"{self.folder} {half}"
            numbered = enumerate(labels.tolist())
            made.append([Picture(gallery, at, self.names[n], f"{place} {at}") for at, n in numbered])
        return made[0], made[1]


def published_in(folder: Path, clothes: bool = False) -> Published | None:
    """The public set that a folder holds, by its files; `clothes` says that MNIST's are Fashion-MNIST's."""
    if mnist_and_cifar.has_cifar(folder):
        found, known = mnist_and_cifar.read_cifar(folder), mnist_and_cifar.CIFAR
    elif mnist_and_cifar.has_idx(folder):
        found, known = mnist_and_cifar.read_idx(folder), mnist_and_cifar.CLOTHES if clothes else []
    else:
        return None
    classes = 1 + max(int(labels.max()) for _, labels in found.values())
    return Published(folder, found, mnist_and_cifar.names_of(folder, known, classes))


def shape(size: tuple[int, ...]) -> str:
    """The shape of images (C H W) in words."""
    return f"{size[1]} x {size[2]} pixels of {size[0]} channel{'s' * (size[0] != 1)}"


def held_out(train: Sequence[Picture], test: Sequence[Picture], what: str, count: int, seed: int) -> Splits[Picture]:
    """Some of those to learn from are held out to choose by: so many, and at most a tenth."""
    order = np.random.default_rng([seed, 4]).permutation(len(train))
    drawn = np.zeros(len(train), np.int64)
    drawn[order[: max(1, min(count, len(train) // 10))]] = 1
    learned, chosen = by_side(train, held_together(digests(one.content for one in train), drawn), 2)
    if not learned or not chosen:
        raise Refusal(f"{what} has too few different images to hold some out to choose by; add more")
    return replace(answerable(Splits(learned, chosen, []), what), test=test)


def answerable(splits: Splits[Picture], what: str) -> Splits[Picture]:
    """The same, but a class that would be held out as a whole is learned from."""
    return learn_unseen(
        splits, lambda one: [one.label], lambda one: one.content, f"{what} has too few images of each class"
    )


def of_halves(
    sides: Sequence[Path | None], read: Callable[[str], list[Picture]], what: str, count: int, seed: int
) -> Splits[Picture]:
    """The folders of `sides_of`, each a folder of folders.

    Where there is but one beside that to learn from, whatever its name, it is tested on, as ImageNet's `val` is, and
    some of those to learn from are held out to choose by.
    """
    train, valid, test = (read(str(place)) if place else [] for place in sides)
    if valid and test:
        return Splits(train, valid, test)
    return held_out(train, valid or test, what, count, seed)


def apart(pictures: Sequence[Picture], what: str, cut: Cut) -> Splits[Picture]:
    """Pictures of one folder or list, divided; equal files or pixels never stand on two sides."""
    sides = divide_samples(pictures, lambda one: sum_of(Path(one.place)), what, cut, lambda one: one.content)
    return answerable(sides, what)


def read_pictures(
    place: str | Sides,
    size: Size,
    broken: Literal["refuse", "skip"],
    processor: Processor | None,
    names: Names = (None, None),
) -> list[Picture]:
    """The pictures of a folder of folders, or of a list: CSV or JSONL, a line a picture, its path and its label.

    `names` are the columns of the path and of the label, where these are not called as others call them.
    """
    if isinstance(place, Sides):
        raise Refusal("images are read from a folder or a list, not from a source and a target; give data=FOLDER")
    path = Path(place)
    found = in_folders(path) if path.is_dir() else list(images_of_list(path, names))
    if not found:
        raise Refusal(f"{path} holds no images; make a folder for each class with its images in it")
    return of_files(found, size, broken, str(path), processor)


def in_folders(folder: Path) -> list[tuple[Path, str]]:
    """Each image below a folder, and its class: the folder of the first level that it is in."""
    below = Classes.of(folder, "images", is_image)
    if below.loose:
        cure = "move it into one, or write a list: data=images.csv"
        raise Refusal(f"{below.loose[0]} is in no folder of a class; {cure}")
    unknown = next((path for path in below.others if path.parent != folder), None)
    if unknown and not below.found:
        raise Refusal(f"{folder} holds no images, and {unknown} is none of {', '.join(ENDINGS)}; convert such files")
    if below.found:
        below.tell()
    return below.found


def is_image(path: Path) -> bool:
    """Whether a path ends as an image does."""
    return path.suffix.lower() in ENDINGS


def images_of_list(path: Path, names: Names = (None, None)) -> Iterator[tuple[Path, str]]:
    """Each image of a list and its label; paths are taken from where the list lies."""
    if is_image(path):
        raise Refusal(f"{path} is one image, and no set of them; give a folder with a folder of images for each class")
    if names != (None, None):
        rows = of_names(path, names[0] or FILE[0], names[1] or LABEL[0])
    else:
        rows = of_objects(path) if is_table(path) else of_csv(path)
    for number, file, label in rows:
        if not file or not label:
            raise Refusal(f"{path}, line {number}: the {'path' if not file else 'label'} is empty; fill it or drop it")
        yield path.parent / file, label


def of_csv(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, path and label of a CSV: by the names of its columns, or its first two where it has no header."""
    rows = list(line_files.rows(path))
    head = [field.strip().lower() for field in rows[0][1]]
    places = [next((head.index(name) for name in names if name in head), -1) for names in (FILE, LABEL)]
    headed, first = min(places) >= 0, path.parent / rows[0][1][0].strip()
    if not headed and len(head) > 1 and first.suffix.lower() not in ENDINGS and not first.exists():
        known = f"one of {', '.join(FILE)} and one of {', '.join(LABEL)}"
        raise Refusal(f"{path}, line 1: {head[0]} is no image; if this is a header, let it have {known}")
    for number, row in rows[1:] if headed else rows:
        at, to = places if headed else (0, 1)
        if len(row) <= max(at, to):
            raise Refusal(f"{path}, line {number}: {len(row)} fields; write the path of an image, a comma, its label")
        yield number, row[at].strip(), row[to].strip()


def of_names(path: Path, file: Column, label: Column) -> Iterator[tuple[int, str, str]]:
    """Line, path and label of a table, by the columns that are named."""
    for number, row in named_rows(path, (file, label)):
        yield number, column(row, file, path, number), column(row, label, path, number)


def of_objects(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, path and label of a table of objects: of JSON, one a line, or of Arrow."""
    for number, row in named_rows(path):
        file, label = (next((row[name] for name in names if name in row), None) for names in (FILE, LABEL))
        if not isinstance(file, str) or not isinstance(label, str | int):
            lacking = "label" if isinstance(file, str) else "image"
            cure = '{"image": "a.jpg", "label": "cat"}, or name the columns: data.image=NAME data.label=NAME'
            raise Refusal(f"{path}, line {number}: the {lacking} is missing or no text; write {cure}")
        yield number, file, str(label)
