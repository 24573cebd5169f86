"""What bad folders are made with."""

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from heedful.safe.sealed_folders import seal

OUTSIDE = "outside"  # a folder beside the bad ones, with good copies of all their files, that nobody may open
WEIGHTS = "model.safetensors"
Spoil = Callable[[Path], object]


class Evil:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch executed",)


PICKLE = pickle.dumps(Evil(), protocol=2)


def holds(name: str, content: str | bytes) -> Spoil:
    """Another file, or another content of one."""
    data = content.encode() if isinstance(content, str) else content

    def spoil(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(data)

    return spoil


def both(*spoils: Spoil) -> Spoil:
    return lambda folder: [spoil(folder) for spoil in spoils]


def lacks(*names: str) -> Spoil:
    return lambda folder: [(folder / name).unlink() for name in names]


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def only(name: str, content: str | bytes) -> Spoil:
    return both(empty, holds(name, content))


def says(name: str, **values: Any) -> Spoil:
    """Other values in a JSON file."""

    def spoil(folder: Path) -> None:
        (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | values))

    return spoil


def replaces(name: str, old: str, new: str) -> Spoil:
    def spoil(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return spoil


def of_size(name: str, size: int, begins: bytes = b"") -> Spoil:
    """A file that says it is large; nothing of it is on the disk."""

    def spoil(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.write(begins)
            file.truncate(size)

    return spoil


def leads(name: str, target: str) -> Spoil:
    """A link in the place of a file or folder."""

    def spoil(folder: Path) -> None:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(target.replace("OUTSIDE", str(folder.parent / OUTSIDE)))

    return spoil


def pipe(name: str) -> Spoil:
    return lambda folder: [(folder / name).unlink(missing_ok=True), os.mkfifo(folder / name)]


def a_folder(name: str) -> Spoil:
    return lambda folder: [(folder / name).unlink(), (folder / name).mkdir()]


def tensor(shape: list[int], offsets: list[int], dtype: str = "F32", **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


def header(said: Any, size: int = 0, claims: int | None = None) -> Spoil:
    """Weights with a header of our own, and so many bytes of numbers that take no room on the disk."""
    data = said if isinstance(said, bytes) else (said if isinstance(said, str) else json.dumps(said)).encode()

    def spoil(folder: Path) -> None:
        with (folder / WEIGHTS).open("wb") as file:
            file.write(struct.pack("<Q", len(data) if claims is None else claims) + data)
            file.truncate(8 + len(data) + size)

    return spoil


def tensors(change: Callable[[dict[str, torch.Tensor]], object], name: str = WEIGHTS) -> Spoil:
    """Other tensors in a file; * in its name stands for the only folder that there is."""

    def spoil(folder: Path) -> None:
        (path,) = folder.glob(name)
        found = load_file(path)
        change(found)
        save_file(found, path)

    return spoil


def in_checkpoint(spoil: Spoil, sealed: bool = True) -> Spoil:
    """A change to a checkpoint, with a manifest that says that it was always so."""

    def within(folder: Path) -> None:
        (place,) = (folder / "checkpoints").iterdir()
        told = json.loads((place / "manifest.json").read_text())
        spoil(place)
        if sealed:
            (place / "manifest.json").unlink()
            seal(place, step=told["step"], made=told["made"])

    return within
