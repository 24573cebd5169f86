"""Ctrl-C: the step at hand is finished and saved."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def finishing_the_step() -> Iterator[list[bool]]:
    """A list that is no longer empty once Ctrl-C was pressed; pressed twice, it stops at once."""
    stop: list[bool] = []

    def note(number: int, frame: FrameType | None) -> None:
        if stop:
            raise KeyboardInterrupt
        stop.append(True)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # not in the main thread: Ctrl-C is somebody else's
        yield stop
        return
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
