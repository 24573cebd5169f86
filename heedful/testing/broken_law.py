"""What a part hears that breaks a law: one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class BrokenLaw(AssertionError):
    """A part broke a law of the project; the message says which, and where."""


@contextmanager
def law(part: str, name: str) -> Iterator[None]:
    """Measures a law on a part: whatever goes wrong meanwhile breaks it, and is told in one sentence."""
    try:
        yield
    except BrokenLaw:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:400] or type(error).__name__
        raise BrokenLaw(f"{part} breaks a law: {name} ({said})") from error
