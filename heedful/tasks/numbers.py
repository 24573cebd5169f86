"""Rows of numbers as text, on the command line and on the axes of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Refusal


def read_rows(text: str, channels: int, what: str) -> NDArray[np.float32]:
    """Rows of an input such as "0.1,0.2; 0.3,0.4": T C."""
    rows = [row for row in text.split(";") if row.strip()]
    if not rows:
        raise Refusal(f"the input is empty; give {what}")
    made = []
    for place, row in enumerate(rows, 1):
        try:
            made.append([float(field) for field in row.split(",")])
        except ValueError:
            raise Refusal(f"row {place} of the input, {row.strip()!r}, holds no numbers; give {what}") from None
        if len(made[-1]) != channels or not np.isfinite(made[-1]).all():
            raise Refusal(
                f"row {place} of the input, {row.strip()!r}, should be {channels} finite numbers; give {what}"
            )
    return np.array(made, dtype=np.float32)


def write_rows(rows: Any) -> str:
    """Rows as text that `read_rows` takes."""
    return "; ".join(words(rows))


def words(rows: Any) -> list[str]:
    """Each row as one word."""
    return [",".join(f"{number:.4g}" for number in row) for row in rows]
