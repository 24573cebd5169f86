"""One trainer a folder: who comes second is told who holds it. A process that dies lets go."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from heedful.errors import Refusal

LOCK, HOLDER = ".lock", ".holder.json"


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """The folder for this process alone."""
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise Refusal(busy(folder)) from None
    try:
        (folder / HOLDER).write_text(json.dumps({"process": os.getpid(), "host": socket.gethostname()}) + "\n")
        yield
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink()
            (folder / LOCK).unlink()  # while it is held: who waits for it sees that it has lost its name
        lock.release()


def clear(folder: Path) -> None:
    """Removes the lock that a killed process left in a folder; that of a living one stays."""
    if (folder / LOCK).exists():
        with suppress(Refusal, OSError), holding(folder):
            pass


def busy(folder: Path) -> str:
    """Who else trains in a folder, and what can be done about it."""
    return f"{folder} is held by {holder(folder)}, which trains in it; wait for it, stop it, or choose another --out"


def is_held(folder: Path) -> bool:
    """Whether a living process trains in a folder."""
    if not (folder / LOCK).exists():
        return False
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def holder(folder: Path) -> str:
    """Who holds a folder, in words."""
    try:
        told = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return f"process {int(told['process'])} on {str(told['host'])[:80]}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
