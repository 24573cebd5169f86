"""Crashes between any two calls, and what they leave."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Crash(BaseException):
    """The end of a process, between two of its calls."""


@contextmanager
def crash_at(owner: Any, name: str, call: int) -> Iterator[None]:
    """Crashes when something is called for the nth time; nothing is tidied up after that, as after a power cut."""
    own, calls = getattr(owner, name), [0]
    with pytest.MonkeyPatch.context() as patch:

        def counted(*arguments: Any, **named: Any) -> Any:
            calls[0] += 1
            if calls[0] == call:
                patch.setattr(shutil, "rmtree", lambda *arguments, **named: None)
                raise Crash
            return own(*arguments, **named)

        patch.setattr(owner, name, counted)
        with pytest.raises(Crash):
            yield


def full(*_: Any) -> None:
    """What writing does when there is no room."""
    raise OSError("disk full")


def listing(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
