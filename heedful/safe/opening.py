"""How a file of a folder is opened, whoever wrote it: a plain file, within the folder, no larger than its kind."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from heedful.errors import Refusal

CURE = "put what it leads to in its place"


def homes(folder: Path) -> list[str]:
    """Within which folders the files of a folder must lie, links followed: within itself.

    The one place for this rule. A hub's cache keeps `snapshots/NAME/` whose files are links into the `blobs/` beside
    `snapshots/`: those may lie there. A folder that is a link itself is where it leads: the user has named it.
    """
    root = os.path.realpath(folder)
    cache, kept = os.path.split(os.path.dirname(root))
    return [root, os.path.join(cache, "blobs")] if kept == "snapshots" else [root]


def inside(path: Path) -> Path:
    """The path itself, of a file or folder in a folder; refused where it is a link that leads out of that."""
    if not lies_within(path, path.parent):
        raise Refusal(f"{path} is a link that leads out of the folder; {CURE}")
    return path


def lies_within(path: Path, folder: Path) -> bool:
    """Whether a path, links followed, lies in a folder."""
    return any(os.path.commonpath((os.path.realpath(path), root)) == root for root in homes(folder))


def content(path: Path, largest: int) -> bytes:
    """The bytes of a plain file; a ValueError, before one is read, where it is another thing or too large.

    A pipe would be waited for, and a device may have no end: neither is opened. Nor is a file without a size: it is
    empty, or one of the system's own (/proc), which may have no end either.
    """
    size = size_of(path)
    if not size:
        return b""
    if size <= largest:
        with path.open("rb") as file:
            data = file.read(largest + 1)
        size = len(data)
    if size > largest:
        raise ValueError(f"it is larger than {amount(largest)}")
    return data


def size_of(path: Path) -> int:
    """How many bytes a plain file has; a ValueError where it is another thing."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no plain file")
    return found.st_size


def amount(size: int) -> str:
    """A number of bytes, in a unit that suits it."""
    return f"{size >> 20} MB" if size >> 20 else f"{size >> 10} kB"


def check_all(folder: Path) -> None:
    """Refuses a folder to be written in, where something in it is neither plain nor a folder, or leads out of it."""
    for path in everything(folder):
        if path.is_symlink():
            if not lies_within(path, folder):
                raise Refusal(f"{path} is a link that leads out of the folder; {CURE}")
        elif path.exists() and not path.is_dir() and not path.is_file():  # another process may have moved it away
            raise Refusal(f"{path} is no plain file; remove it")


def everything(folder: Path) -> Iterator[Path]:
    """All that lies in a folder and in those below it; links are not followed."""
    for place, folders, files in os.walk(folder):
        for name in sorted((*folders, *files)):
            yield Path(place) / name
