"""A checksum of a run's data, by which a run that goes on notices that they have changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from heedful.data.splits import Splits
from heedful.terminal import progress

WHERE = {"path", "paths", "line", "place", "where"}  # of a sample: where it was read, which may be elsewhere by now
AT_ONCE = 1000  # samples


@runtime_checkable
class Summed(Protocol):
    """What makes the sums of its bytes itself, as a gallery of pictures does."""

    def sums(self) -> list[str]:
        """The SHA-256 of all bytes, one or several."""
        ...


def sum_of(splits: Splits[Any]) -> str:
    """The SHA-256 of all that the samples hold, and of all bytes of the files that images are decoded from."""
    summed = hashlib.sha256()
    encoder = json.JSONEncoder(default=partial(contents, shared={}))
    parts = splits.train, splits.valid, splits.test
    with progress("a checksum of the data is made", sum(map(len, parts))) as heard:
        for split in parts:
            for some in portions(split):
                summed.update(encoder.encode(some).encode())
                heard(AT_ONCE)
            summed.update(b"\n")
    return summed.hexdigest()


def portions(split: Sequence[Any]) -> Iterator[list[Any]]:
    """The samples of a split, some at once; or itself, where it makes them of a few values when they are asked for."""
    if is_dataclass(split):
        yield [split]
        return
    for start in range(0, len(split), AT_ONCE):
        yield [split[at] for at in range(start, min(start + AT_ONCE, len(split)))]


def contents(value: Any, shared: dict[int, int]) -> Any:
    """What a value holds, as JSON knows it; what many samples share is told once, and then by its number."""
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, frozenset):
        return sorted(value)
    if "__eq__" not in vars(type(value)):  # it is itself, whatever it holds
        if id(value) in shared:
            return shared[id(value)]
        shared[id(value)] = len(shared)
    if isinstance(value, Summed):
        return value.sums()
    if not is_dataclass(value):
        raise TypeError(f"a sample holds a {type(value).__name__}, of which no sum is made")
    return [getattr(value, field.name) for field in fields(value) if field.name not in WHERE]
