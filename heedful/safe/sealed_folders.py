"""Folders that are there whole or not at all: written aside, flushed, sealed by a manifest and moved into place."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from heedful.safe.opening import content, everything, inside
from heedful.safe.plain_data import json_of

MANIFEST = "manifest.json"
LARGEST = 1 << 24  # bytes of a manifest
AT_ONCE = 1 << 22  # bytes that are read to be summed


def write_folder(folder: Path, fill: Callable[[Path], object]) -> None:
    """Fills a folder aside and moves it into place, so that it is there whole or not at all.

    One that it replaces lends its permissions, is moved aside before, and back where a kill came between.
    """
    aside, old = (folder.with_name(f".{folder.name}.{word}.aside") for word in (os.getpid(), "old"))
    shutil.rmtree(aside, ignore_errors=True)
    if old.exists() and not folder.exists():
        old.rename(folder)
    with making(folder.parent):
        try:
            aside.mkdir()
            if folder.exists():
                aside.chmod(stat.S_IMODE(folder.stat().st_mode))
            fill(aside)
            for path in (*sorted(aside.iterdir()), aside):
                flush(path)
            with moved_aside(folder, old):
                aside.rename(folder)
                flush(folder.parent)
        finally:
            for stray in folder.parent.glob(f".{escape(folder.name)}.*.aside"):  # and of a process that was killed
                shutil.rmtree(stray, ignore_errors=True)


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Makes a folder and those above it, where they are missing; they go again where what follows fails."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for place in missing:
            with suppress(OSError):  # something else is in it by now
                place.rmdir()
        raise


@contextmanager
def moved_aside(folder: Path, old: Path) -> Iterator[None]:
    """Moves a folder aside, where there is one, and back where what follows fails."""
    shutil.rmtree(old, ignore_errors=True)
    moved = folder.exists()
    if moved:
        folder.rename(old)
    try:
        yield
    except BaseException:
        if moved and not folder.exists():
            old.rename(folder)
        raise


def remove_folder(folder: Path) -> None:
    """Removes a folder that may not be there; it is moved aside first, so that no half of it keeps the name."""
    if folder.exists():
        aside = folder.with_name(f".{folder.name}.old.aside")
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        shutil.rmtree(aside)


def replace_file(path: Path, text: str) -> None:
    """Writes a file aside and moves it into place, so that it is there whole, as it was, or not at all."""
    aside = path.with_name(f".{path.name}.aside")
    aside.write_text(text, encoding="utf-8")
    flush(aside)
    os.replace(aside, path)
    flush(path.parent)


def flush(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_tensors(tensors: dict[str, Tensor], path: Path, told: dict[str, str] | None = None) -> None:
    """Tensors as safetensors, with what is `told` of them; those that share storage are written once each by name."""
    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    try:
        save_file(whole, path, told)
    except SafetensorError as error:  # it has the system's own error in words alone
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) if number else error from None
    path.chmod(path.parent.stat().st_mode & 0o666)  # who may read the folder may read what is in it


# ---------------------------------------------------------------------- manifests


def seal(folder: Path, without: Collection[str] = (), **told: Any) -> None:
    """Writes the manifest of a folder, last of all: what is `told` of it, and the size and SHA-256 of each file.

    Files `without` a sum are pages for people, who may edit them.
    """
    files = {}
    for path in sorted(filter(Path.is_file, everything(folder))):
        flush(path)
        if path.name in without:
            continue
        files[str(path.relative_to(folder))] = {"bytes": path.stat().st_size, "sha256": sum_of(path)}
    (folder / MANIFEST).write_text(json.dumps(told | {"files": files}, indent=1) + "\n", encoding="utf-8")


def sum_of(path: Path) -> str:
    """The SHA-256 of a file."""
    summed = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(AT_ONCE):
            summed.update(part)
    return summed.hexdigest()


def manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder; none where it is not there or says nothing of files."""
    try:
        told = json_of(content(inside(folder / MANIFEST), LARGEST).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and isinstance(told.get("files"), dict) else None


def fault(folder: Path, only: Collection[str] = ()) -> str | None:
    """What is wrong with a folder, or with `only` some of its files, by its manifest; none where nothing is."""
    told = manifest(folder)
    if told is None:
        return f"{MANIFEST} is missing or cannot be read"
    there = {str(path.relative_to(folder)) for path in everything(folder)}
    for name, wanted in told["files"].items():
        if only and name not in only:
            continue
        if not isinstance(wanted, dict):
            return f"{MANIFEST} is not one that was written here"
        path = folder / name
        if name not in there or not inside(path).is_file():
            return f"{name} is missing"
        size = path.stat().st_size
        if size != wanted.get("bytes"):
            return f"{name} has {size} bytes and not the {wanted.get('bytes')} that were written"
        if sum_of(path) != wanted.get("sha256"):
            return f"{name} has other bytes than were written"
    return None
