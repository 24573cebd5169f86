"""Damaged input at a door, by seeded dice: it is read, or refused with a line. Whatever else comes of it is a fault."""

import signal
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from heedful.errors import Refusal
from tests.parsers import commands, doors, sealed

DOORS = doors.DOORS | sealed.DOORS | commands.DOORS
SECONDS = 60  # in which anything is read or refused, on a busy machine too


class Fault(NamedTuple):
    """An error that is no refusal: where it was raised, and the whole story."""

    kind: str
    said: str


class Late(BaseException):
    """What takes too long."""


def late(*_: object) -> None:
    raise Late


class Attack:
    """One door, and the dice that go on where they stopped."""

    def __init__(self, door: str, place: Path, seed: int) -> None:
        place.mkdir(parents=True)
        self.door, self.dice, self.count, self.refused = door, Random(f"{door} {seed}"), 0, 0
        with warnings.catch_warnings(action="ignore"):
            self.goods = [(one, one.path.read_bytes()) for one in DOORS[door](place)]

    def go_on(self, count: int) -> list[Fault]:
        """So many damaged inputs more, and what was wrong with how they were received."""
        found = []
        signal.signal(signal.SIGALRM, late)
        for _ in range(count):
            one, whole = self.dice.choice(self.goods)
            damaged = one.damage(self.dice, whole)
            one.path.write_bytes(damaged)
            signal.alarm(SECONDS)
            try:
                with warnings.catch_warnings(action="ignore"):
                    one.read()
            except Refusal as refusal:
                self.refused += 1
                if not str(refusal).isprintable():
                    found.append(Fault(f"{self.door}: unprintable", f"{refusal!r} of {damaged[:1000]!r}"))
            except (Exception, Late) as error:
                found.append(self.fault(error, one.path, damaged))
            finally:
                signal.alarm(0)
                one.path.write_bytes(whole)
        self.count += count
        return found

    def fault(self, error: Any, path: Path, damaged: bytes) -> Fault:
        """What went wrong, told by the last lines of ours that it went through."""
        every = traceback.extract_tb(error.__traceback__)
        frames = [one for one in every if "/heedful/" in one.filename] or every
        last = frames[-1]
        where = f"{last.filename.rpartition('heedful/')[2]}:{last.lineno}"
        kind = f"{self.door} {type(error).__name__} at {where}"
        way = " < ".join(f"{one.name}:{one.lineno}" for one in reversed(frames[-5:]))
        return Fault(kind, f"{kind} ({way})\n  {str(error)[:200]}\n  {path.name}: {damaged[:600]!r}")
