"""Ctrl-C, SIGTERM and SIGHUP: answered by a thread at once, whatever call the main thread is inside."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from heedful.terminal import note

SIGNALS = [one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGHUP")]  # not all systems have all
FINISHING = "finishing this step; again to stop at once"
STOPPING = "stopping when the call that runs returns; again to stop at once"
PATIENCE, GRACE = 0.5, 1.0  # seconds: in which a call may return before a word is said, and before the process is ended
ECHO = 2.0  # seconds in which torchrun hands on to its processes what a terminal has told them already


class Ear:
    """Hears signals in a thread, while the main one is inside a call: says that one came; on the second, ends all."""

    def __init__(self, answer: Callable[[], object], patience: float = 0.0) -> None:
        self.answer, self.patience = answer, patience
        self.echo = ECHO if "RANK" in os.environ else 0.0
        self.first = float("inf")  # when
        self.left = threading.Event()

    def listen(self) -> None:
        """Answers each signal of those that are written into a pipe as they come, until something else is."""
        while (heard := os.read(self.pipe[0], 1)) != b"\0":
            if heard[0] not in SIGNALS:
                continue
            if self.first == float("inf"):
                self.first = time.monotonic()
                if not self.left.wait(self.patience):
                    with suppress(OSError):  # a terminal that is no more
                        self.answer()
            elif time.monotonic() >= self.first + self.echo and not self.left.wait(GRACE):
                end()

    def __enter__(self) -> Ear:
        self.pipe = os.pipe()
        os.set_blocking(self.pipe[1], False)
        self.before = signal.set_wakeup_fd(self.pipe[1], warn_on_full_buffer=False)
        self.thread = threading.Thread(target=self.listen, name="signals", daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(self.before)
        self.left.set()
        os.write(self.pipe[1], b"\0")
        self.thread.join()
        for handle in self.pipe:
            os.close(handle)


def end() -> None:
    """Ends the process, which does not come out of a call: what is saved is whole, whenever that is."""
    with suppress(OSError):
        os.write(2, b"\x1b[?25h\nheedful: stopped\n" if os.isatty(2) else b"heedful: stopped\n")  # with its cursor
    os._exit(130)


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[dict[int, Any]]:
    """Has a function handle the signals, but for those that were told to be ignored, as by nohup; gives who did."""
    found = {number: signal.getsignal(number) for number in SIGNALS}
    before: dict[int, Any] = {n: was for n, was in found.items() if n == signal.SIGINT or was != signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, handler)
        yield before
    finally:
        for number, was in before.items():
            signal.signal(number, was)


@contextmanager
def stopping() -> Iterator[None]:
    """Inside, all of the signals stop what runs, as Ctrl-C does; where that takes a while, it is said."""
    if threading.current_thread() is not threading.main_thread():  # signals are somebody else's
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        quiet(number, terminals)
        raise KeyboardInterrupt

    terminals = open_terminals()
    with handling(stop), Ear(lambda: note(f"heedful: {STOPPING}"), PATIENCE):
        yield


@contextmanager
def finishing_the_step(say: Callable[[str], object], lost: Callable[[], object] = list) -> Iterator[list[bool]]:
    """A list that is no longer empty once a signal came, which is said; the second one stops at once.

    Where other processes are lost, no step can be finished any more, and SIGTERM does what it did outside.
    """
    stop: list[bool] = []
    if threading.current_thread() is not threading.main_thread():  # signals are somebody else's
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        quiet(number, terminals)
        if number == signal.SIGTERM and lost():  # torchrun ends all, for no step can be finished any more
            before[number](number, frame)
        if stop and time.monotonic() >= since[0] + ear.echo:
            raise KeyboardInterrupt
        since.append(time.monotonic())
        stop.append(True)

    since: list[float] = []
    terminals = open_terminals()
    ear = Ear(lambda: say(FINISHING))
    with handling(note) as before, ear:
        yield stop


def open_terminals() -> list[int]:
    """The outputs of this process that are terminals."""
    return [handle for handle in (1, 2) if os.isatty(handle)]


def quiet(number: int, terminals: list[int]) -> None:
    """Where the terminal is gone, has what is still said go nowhere: writing to it would fail."""
    if signal.Signals(number).name == "SIGHUP":
        for handle in terminals:
            os.dup2(os.open(os.devnull, os.O_WRONLY), handle)
