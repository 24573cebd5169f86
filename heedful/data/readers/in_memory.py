"""Readers of samples that lie in memory: any sequence or torch Dataset, with the keys of a reader of files."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from pydantic import BaseModel, PrivateAttr

from heedful.data.readers.reader import MEMORY, Reader
from heedful.data.splits import Splits
from heedful.errors import Refusal


class Held(BaseModel):
    """What lies in memory, in the place of what would be read."""

    _held: Splits[Any] = PrivateAttr()

    @property
    def held(self) -> Splits[Any]:
        """The samples as they were given."""
        return self._held

    def read(self, seed: int) -> Splits[Any]:
        """The samples as they were given."""
        return self._held


def in_memory(kind: type[Reader], samples: Any, keys: dict[str, Any]) -> Reader:
    """A reader that gives samples as another gives those of files, and has its keys."""
    made: Reader = type(kind.__name__, (Held, kind), {"__module__": __name__, "__doc__": kind.__doc__})(
        **{"name": MEMORY, **keys}
    )
    if not isinstance(samples, Splits | Sized):
        kind_of = type(samples).__name__
        raise Refusal(f"samples are a {kind_of}, which has no length; give a list or a torch Dataset with __len__")
    try:
        made._held = made.from_memory(samples)  # type: ignore[attr-defined]
    except Refusal:
        raise
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise Refusal(f"a sample in memory is not as {kind.__name__} gives them ({error}); mend it") from None
    return made
