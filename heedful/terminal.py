"""All that is printed goes through here: into files and pipes as it is, and to a terminal without what it would obey.

Labels, names, answers and paths are written by others, and a terminal takes some characters for commands.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from traceback import format_exception
from types import TracebackType
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

PATIENCE = 5.0  # seconds in which long work says something
SILENCE = 8.0  # seconds after which a run that has said nothing says where it is
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all that is no sign, but tabs and the ends of lines


def say(text: object = "", end: str = "\n", flush: bool = False) -> None:
    """Prints an answer, on standard output."""
    put(sys.stdout, f"{text}{end}", flush)


def note(line: str) -> None:
    """Prints what is beside the answers, on standard error; a reader who has gone is no fault."""
    with suppress(OSError):
        put(sys.stderr, f"{line}\n", True)


def put(stream: TextIO | None, text: str, flush: bool) -> None:
    """Prints a text where somebody listens: who closes a stream wants to hear nothing."""
    if stream is not None:
        stream.write(clean(text) if is_terminal(stream) else text)
        if flush:
            stream.flush()


def clean(text: str) -> str:
    r"""A text whose control characters are written out, as \x1b, and not obeyed."""
    return OBEYED.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees what is printed into a stream."""
    below = getattr(stream, "rich_proxied_file", stream)  # while a bar moves, rich stands before the stream
    return below is not None and not below.closed and below.isatty()


@contextmanager
def progress(what: str, total: int = 0) -> Iterator[Callable[[int], object]]:
    """Says every few seconds how much of long work is done; gives the function that hears of each piece of it.

    A thread says it, since what takes long may be one call that comes back at its end.
    """
    begun, ended, done = time.monotonic(), threading.Event(), 0

    def heard(more: int) -> None:
        nonlocal done
        done += more

    def tell() -> None:
        while not ended.wait(PATIENCE):
            if not total or done < total:  # else it is over, and other work has begun
                note(f"heedful: {what}: {f'{done / total:.0%}' if total else f'{time.monotonic() - begun:.0f} s'}")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        ended.set()
        thread.join()


@contextmanager
def heartbeat(line: Callable[[], str], quiet: Callable[[], float]) -> Iterator[None]:
    """Says a line whenever nothing was said for a while: `quiet` gives the seconds since something was."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(1.0):
            if quiet() >= SILENCE:
                note(line())

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def duration(seconds: float) -> str:
    """A time in words: 40 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class Bars(Console):
    """Where bars move, on standard error: rich's own commands reach the terminal, and those in a text do not."""

    def __init__(self) -> None:
        super().__init__(stderr=True, highlight=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The parts of what is drawn, with clean texts."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(clean(part.text), part.style)


# ---------------------------------------------------------------------- the streams of the program


def hold() -> None:
    """Gives closed standard streams to the device that forgets, or the next file that is opened would get their number.

    A sign that a terminal lacks is no reason to stop: it is written out.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.excepthook = tell


def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints a fault of our own, with where it happened."""
    note("".join(format_exception(kind, error, trace)).rstrip("\n"))


def flush_output(status: int) -> int:
    """Prints what waits to be printed, and says with which status to leave: lost answers are a failure.

    A reader who has heard enough is none.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        forgotten = os.open(os.devnull, os.O_WRONLY)
        os.dup2(forgotten, sys.stdout.fileno())  # so that Python's own last flush does not complain
        if not isinstance(error, BrokenPipeError):
            note(f"heedful: standard output: {error.strerror}; what was to be said there is lost")
            return status or 1
    return status
