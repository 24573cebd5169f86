"""Readers of samples that lie in memory: any sequence or torch Dataset, with the keys of a reader of files."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, PrivateAttr

from heedful.data.readers.reader import MEMORY, Reader
from heedful.data.splits import Splits


class Held(BaseModel):
    """What lies in memory, in the place of what would be read."""

    _held: Splits[Any] = PrivateAttr()

    def read(self, seed: int) -> Splits[Any]:
        """The samples as they were given."""
        return self._held


def in_memory(kind: type[Reader], samples: Any, keys: dict[str, Any]) -> Reader:
    """A reader that gives samples as another gives those of files, and has its keys."""
    made: Reader = type(kind.__name__, (Held, kind), {"__module__": __name__, "__doc__": kind.__doc__})(
        **{"name": MEMORY, **keys}
    )
    made._held = made.from_memory(samples)  # type: ignore[attr-defined]
    return made
