"""Rows of numbers as text, on the command line and on the axes of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.line_files import NO_NUMBER, is_number
from heedful.errors import Refusal


def read_rows(text: str, channels: int, what: str) -> NDArray[np.float32]:
    """Rows of an input such as "0.1,0.2; 0.3,0.4": T C."""
    rows = [row for row in text.split(";") if row.strip()]
    if not rows:
        raise Refusal(f"the input is empty; give {what}")
    for place, row in enumerate(rows, 1):
        fields = row.split(",")
        if not all(map(is_number, fields)):
            raise Refusal(f"row {place} of the input, {row.strip()[:40]!r}, holds {NO_NUMBER}; give {what}")
        if len(fields) != channels:
            numbers = f"{len(fields)} number{'s' * (len(fields) > 1)}"
            raise Refusal(f"row {place} of the input has {numbers} and the model takes {channels}; give {what}")
    return np.array([[float(field) for field in row.split(",")] for row in rows], dtype=np.float32)


def rows_of(given: Any, channels: int, what: str) -> NDArray[np.float32]:
    """Rows of an input, as text, a list, an array or a tensor: T C."""
    if isinstance(given, str):
        return read_rows(given, channels, what)
    rows = np.asarray(given, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != channels:
        raise Refusal(f"the input has the shape {list(rows.shape)} and the model takes rows of {channels}; give {what}")
    return rows


def write_rows(rows: NDArray[np.float32]) -> str:
    """Rows as text that `read_rows` takes, to the last bit."""
    return "; ".join(",".join(map(str, row)) for row in rows)


def words(rows: Any) -> list[str]:
    """Each row as one short word, for an axis."""
    return [",".join(f"{number:.4g}" for number in row) for row in rows]
