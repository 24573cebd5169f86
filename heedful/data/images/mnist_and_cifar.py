"""Public sets of images as they are published: idx files (MNIST), and CIFAR-10's records, archive and sheets."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from heedful.data.images.decode import MODES
from heedful.data.line_files import GZIP, lines
from heedful.errors import Refusal
from heedful.safe.opening import amount, content

Bytes = NDArray[np.uint8]
Halves = dict[str, tuple[Bytes, Bytes]]  # of "train" and "test": pictures, N C H W, and the number of each one's class
LARGEST = 1 << 30  # bytes of a file, and of an array that it unfolds to
ARCHIVE = 1 << 28  # bytes that CIFAR-10's archive may unfold to: it has 184 million
BATCH = 1 << 27  # bytes of a file of records: CIFAR-10's have 31 million
IDX = {"train": "train", "test": "t10k"}
CLOTHES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
RECORD = 1 + 3 * 32 * 32  # a label, then red, green and blue
SHEET = 3200  # pixels along the side of a sheet of a hundred times a hundred pictures


def stream(path: Path) -> io.BufferedIOBase:
    """A file to read from, gzipped or plain; it unfolds no further than it is read."""
    try:
        data = content(path, LARGEST)
    except FileNotFoundError:
        raise Refusal(f"{path} is missing; copy the whole set") from None
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} cannot be read: {error}; copy it again") from None
    return gzip.GzipFile(fileobj=io.BytesIO(data)) if data.startswith(GZIP) else io.BytesIO(data)


def some(file: io.BufferedIOBase, count: int, path: Path) -> bytes:
    """The next bytes of a file, fewer where it ends."""
    try:
        return file.read(count)
    except (OSError, EOFError, zlib.error) as error:
        raise Refusal(f"{path} is gzipped but not whole: {error}; copy or compress it again") from None


def bytes_of(path: Path, most: int) -> bytes:
    """What a file holds, gzipped or plain, where that is not too much."""
    data = some(stream(path), most + 1, path)
    if len(data) > most:
        raise Refusal(f"{path} holds more than the {most:,} bytes that it may; copy it again")
    return data


def idx(path: Path) -> Bytes:
    """The array of an idx file of bytes, as LeCun's MNIST has them: two zeros, the type, how many axes, their sizes."""
    file = stream(path)
    head = some(file, 4, path)
    axes = head[3] if len(head) > 3 else 0
    told = some(file, 4 * axes, path) if head[:3] == b"\x00\x00\x08" and 1 <= axes <= 4 else b""
    if not told or len(told) < 4 * axes:
        raise Refusal(f"{path} is no idx file of bytes; copy it again")
    sizes = np.frombuffer(told, ">u4").tolist()
    said = f"{path} says that it holds {' x '.join(map(str, sizes))} bytes"
    if prod(sizes) > LARGEST:
        raise Refusal(f"{said}, and {amount(LARGEST)} are the most; choose fewer or smaller images")
    data = some(file, prod(sizes) + 1, path)  # one more, so that its end is seen
    if len(data) != prod(sizes):
        raise Refusal(f"{said} and does not; copy it again")
    return np.frombuffer(data, np.uint8).reshape(sizes)


def has_idx(folder: Path) -> bool:
    """Whether a folder holds MNIST's files, or another set's by the same names."""
    return beside(folder, "train-images") is not None and beside(folder, "t10k-images") is not None


def beside(folder: Path, name: str) -> Path | None:
    """The file of that name, whatever it ends with: -idx3-ubyte, .idx3-ubyte, with or without .gz."""
    return next((path for path in sorted(folder.glob(f"{name}*idx*")) if path.is_file()), None)


def read_idx(folder: Path) -> Halves:
    """The two halves of MNIST or of a set by the same names."""
    made = {}
    for half, name in IDX.items():
        both = [beside(folder, f"{name}-{kind}") for kind in ("images", "labels")]
        if both[0] is None or both[1] is None:
            raise Refusal(f"{folder} has no {name}-images and {name}-labels idx files both; copy them again")
        images, labels = idx(both[0]), idx(both[1])
        if images.ndim == 3:
            images = images[:, None]
        if images.ndim != 4 or labels.ndim != 1 or len(images) != len(labels) or not images.size:
            raise Refusal(f"{both[0]} and {both[1].name} do not belong together; copy them again")
        if images.shape[1] not in MODES and images.shape[3] in MODES:
            said = f"{both[0]} has images of {images.shape[1]} channels, {images.shape[3]} pixels wide"
            raise Refusal(f"{said}; write channels before rows and columns")
        made[half] = images, labels
    return made


def has_cifar(folder: Path) -> bool:
    """Whether a folder holds CIFAR-10: its binary records, their archive, or its sheets."""
    return any((folder / name).is_file() for name in ("data_batch_1.bin", "cifar-10-binary.tar.gz", "train_labels.bin"))


def read_cifar(folder: Path) -> Halves:
    """The two halves of CIFAR-10 (Krizhevsky, 2009)."""
    if (folder / "train_labels.bin").is_file():
        return sheets(folder)
    archive = folder / "cifar-10-binary.tar.gz"
    records = unpack_archive(archive) if archive.is_file() else {}
    train = [records_of(folder / f"data_batch_{n}.bin", records) for n in range(1, 6)]
    halves = {"train": np.concatenate(train), "test": records_of(folder / "test_batch.bin", records)}
    return {half: (rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0]) for half, rows in halves.items()}


def unpack_archive(archive: Path) -> dict[str, bytes]:
    """The files of records in an archive by name, without their folders; nothing is written."""
    try:
        data = gzip.GzipFile(fileobj=io.BytesIO(content(archive, ARCHIVE))).read(ARCHIVE + 1)
        if len(data) > ARCHIVE:
            raise ValueError(f"it unfolds to more than {amount(ARCHIVE)}")
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            whole = [one for one in tar if one.isfile() and not one.issparse() and one.name.endswith(".bin")]
            return {Path(one.name).name: file.read() for one in whole if (file := tar.extractfile(one)) is not None}
    except (OSError, ValueError, EOFError, zlib.error, tarfile.TarError) as error:
        raise Refusal(f"{archive} cannot be unpacked: {error}; copy it again") from None


def records_of(path: Path, unpacked: dict[str, bytes]) -> Bytes:
    """A file of records, from an archive or from the folder: N 3073."""
    data = unpacked.get(path.name) or bytes_of(path, BATCH)
    rows = np.frombuffer(data, np.uint8)
    if not len(rows) or len(rows) % RECORD or rows[::RECORD].max() > 9:
        raise Refusal(f"{path} is no file of CIFAR-10's records; copy it again")
    return rows.reshape(-1, RECORD)


def sheets(folder: Path) -> Halves:
    """CIFAR-10 as sheets of a hundred times a hundred pictures, whose labels lie beside them."""
    made = {}
    for half, names in (("train", [f"train_batch_{n}" for n in range(1, 6)]), ("test", ["test_batch"])):
        pages = [sheet(folder, name) for name in names]
        labels = np.frombuffer(bytes_of(folder / f"{half}_labels.bin", BATCH), np.uint8)
        if len(labels) != sum(map(len, pages)):
            raise Refusal(f"{folder / half}_labels.bin has {len(labels):,} labels, too many or too few; copy it again")
        made[half] = np.concatenate(pages), labels
    return made


def sheet(folder: Path, name: str) -> Bytes:
    """The pictures of a sheet, row by row: N 3 32 32."""
    path = next((path for path in sorted(folder.glob(f"{name}.*")) if path.suffix in (".jpg", ".png", ".webp")), None)
    if path is None:
        raise Refusal(f"{folder} has no sheet {name}; copy it again")
    try:
        with Image.open(io.BytesIO(bytes_of(path, BATCH)), formats=("JPEG", "PNG", "WEBP")) as image:
            if image.size != (SHEET, SHEET):
                raise Refusal(f"{path} is {image.size[0]} x {image.size[1]} pixels, not {SHEET} x {SHEET}")
            pixels = np.asarray(image.convert("RGB"))
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error}; copy it again") from None
    cut = pixels.reshape(100, 32, 100, 32, 3).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(cut).reshape(-1, 3, 32, 32)


def names_of(folder: Path, known: list[str], classes: int) -> list[str]:
    """The names of a set's classes: those of its `classes.txt`, those that are known, or their numbers."""
    own = next((folder / name for name in ("classes.txt", "batches.meta.txt") if (folder / name).is_file()), None)
    names = [line.strip() for line in lines(own) if line.strip()] if own else known
    double = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if double is not None:
        raise Refusal(f"{own} names two classes {double!r}, which would be one; give each a name of its own")
    return names if len(names) >= classes else [str(number) for number in range(classes)]
