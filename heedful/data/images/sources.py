"""Which pictures the data name: drawn ones, a public set, or a user's own folders and lists."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.data.data_spec import DataSpec
from heedful.data.formats import line_files
from heedful.data.formats.class_folders import Classes, sides_of
from heedful.data.images import mnist_and_cifar
from heedful.data.images.decode import ENDINGS, Size
from heedful.data.images.gallery import Gallery, Picture, of_files
from heedful.data.near_duplicates import by_side, digests, held_together
from heedful.data.public import download as public
from heedful.data.sides import Sides
from heedful.data.splits import Splits, divided, opened, taught
from heedful.data.toys.drawn_shapes import shapes
from heedful.errors import Refusal
from heedful.safe.sealed_folders import sum_of

if TYPE_CHECKING:
    from heedful.inputs.image_input import Processor

SETS = ("shapes", "cifar10", "fashion-mnist")  # by name
FILE, LABEL = ("path", "file", "image", "filename", "file_name"), ("label", "class", "target")  # columns of a list


def size_of(data: DataSpec) -> Size:
    """Of what shape files are made, and shapes drawn."""
    high, wide = data.pixels or (32, 32)
    return Size(data.channels or 3, high, wide)


def opened_pictures(data: DataSpec, seed: int, processor: Processor | None = None) -> Splits[Picture]:
    """Pictures to learn from, to choose by and to test on, brought to their shape as a processor says."""
    if data.name == "shapes":
        return shapes(data, seed, size_of(data), processor)
    folder = public.home(data.name) if data.name in SETS else Path(data.name)
    if mnist_and_cifar.has_cifar(folder):
        return halves(mnist_and_cifar.read_cifar(folder), folder, mnist_and_cifar.CIFAR, data, processor)
    if mnist_and_cifar.has_idx(folder):
        known = mnist_and_cifar.CLOTHES if data.name == "fashion-mnist" else []
        return halves(mnist_and_cifar.read_idx(folder), folder, known, data, processor)
    if data.name in SETS:
        raise Refusal(f"{folder} holds no {data.name}; fetch it with `heedful data get {data.name}`")
    if data.name != "files" and (sides := sides_of(folder)):
        return of_halves(sides, data, processor)

    def divide(all: Sequence[Picture], what: str) -> Splits[Picture]:
        return answerable(apart(all, what, data), what)

    return opened(data, lambda place: read(place, data, processor), divide, SETS)


def halves(
    found: mnist_and_cifar.Halves, folder: Path, known: list[str], data: DataSpec, processor: Processor | None = None
) -> Splits[Picture]:
    """A set that comes in two halves, some of the first held out to choose by."""
    classes = 1 + max(int(labels.max()) for _, labels in found.values())
    names, made = mnist_and_cifar.names_of(folder, known, classes), []
    own, asked = found["train"][0].shape[1:], size_of(data)
    tested = found["test"][0].shape[1:]
    if own != tested:
        raise Refusal(
            f"{folder} has images of {shape(own)} to learn from and of {shape(tested)} to test on; use one size"
        )
    sized = data.pixels and not processor
    if (sized and own[1:] != asked[1:]) or (data.channels and own[0] != data.channels):
        raise Refusal(f"{folder} has images of {shape(own)}; leave data.pixels and data.channels out, or set them so")
    for half, (pixels, labels) in found.items():
        gallery = Gallery(pixels, processor)
        made.append([Picture(gallery, at, names[n], f"{folder} {half} {at}") for at, n in enumerate(labels.tolist())])
    return held_out(made[0], made[1], data)


def shape(size: tuple[int, ...]) -> str:
    """The shape of images (C H W) in words."""
    return f"{size[1]} x {size[2]} pixels of {size[0]} channel{'s' * (size[0] != 1)}"


def held_out(train: Sequence[Picture], test: Sequence[Picture], data: DataSpec) -> Splits[Picture]:
    """Some of those to learn from are held out to choose by: data.held_out, and at most a tenth."""
    count = max(1, min(data.held_out, len(train) // 10))
    order = np.random.default_rng([data.split_seed, 4]).permutation(len(train))
    drawn = np.zeros(len(train), np.int64)
    drawn[order[:count]] = 1
    learned, chosen = by_side(train, held_together(digests(one.content for one in train), drawn), 2)
    if not learned or not chosen:
        raise Refusal(f"{data.name} has too few different images to hold some out to choose by; add more")
    return replace(answerable(Splits(learned, chosen, []), data.name), test=test)


def answerable(splits: Splits[Picture], what: str) -> Splits[Picture]:
    """The same, but a class that would be held out as a whole is learned from."""
    return taught(splits, lambda one: [one.label], lambda one: one.content, f"{what} has too few images of each class")


def of_halves(sides: Sequence[Path | None], data: DataSpec, processor: Processor | None) -> Splits[Picture]:
    """The folders of `sides_of`, each a folder of folders.

    Where there is but one beside that to learn from, whatever its name, it is tested on, as ImageNet's `val` is, and
    some of those to learn from are held out to choose by.
    """
    train, valid, test = (read(str(place), data, processor) if place else [] for place in sides)
    return Splits(train, valid, test) if valid and test else held_out(train, valid or test, data)


def apart(pictures: Sequence[Picture], what: str, data: DataSpec) -> Splits[Picture]:
    """Pictures of one folder or list, divided; equal files or pixels never stand on two sides."""
    return divided(pictures, lambda one: sum_of(Path(one.place)), what, data.split_seed, lambda one: one.content)


def read(place: str | Sides, data: DataSpec, processor: Processor | None = None) -> list[Picture]:
    """The pictures of a folder of folders, or of a list: CSV or JSONL, a line a picture, its path and its label."""
    if isinstance(place, Sides):
        raise Refusal("images are read from a folder or a list, not from a source and a target; give data=FOLDER")
    path = Path(place)
    found = in_folders(path) if path.is_dir() else list(listed(path))
    if not found:
        raise Refusal(f"{path} holds no images; make a folder for each class with its images in it")
    return of_files(found, size_of(data), data.broken, str(path), processor)


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


def listed(path: Path) -> Iterator[tuple[Path, str]]:
    """Each image of a list and its label; paths are taken from where the list lies."""
    if is_image(path):
        raise Refusal(f"{path} is one image, and no set of them; give a folder with a folder of images for each class")
    rows = of_jsonl(path) if path.suffix.lower() in (".jsonl", ".ndjson") else of_csv(path)
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


def of_jsonl(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, path and label of a file of JSON objects, one a line."""
    for number, line in enumerate(line_files.lines(path), 1):
        if line.strip():
            row = parsed(line, path, number)
            file, label = (next((row[name] for name in names if name in row), None) for names in (FILE, LABEL))
            if not isinstance(file, str) or not isinstance(label, str | int):
                lacking = "label" if isinstance(file, str) else "image"
                cure = '{"image": "a.jpg", "label": "cat"}'
                raise Refusal(f"{path}, line {number}: the {lacking} is missing or no text; write {cure}")
            yield number, file, str(label)


def parsed(line: str, path: Path, number: int) -> dict[str, Any]:
    """The object of a line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path}, line {number}: cannot be read as JSON: {error}; mend or drop it") from None
    return row if isinstance(row, dict) else {}
