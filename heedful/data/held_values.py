"""Values of samples that lie in memory: texts and labels, as those of files are."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor


def text_in_memory(given: Any) -> str:
    """A text that lies in memory; what is none is refused by whoever asks for it."""
    if not isinstance(given, str):
        raise TypeError(f"{given!r} is no text")
    return given


def label_in_memory(given: Any) -> str:
    """A label that lies in memory as a word, though it be a number."""
    label = given.item() if isinstance(given, np.generic | Tensor) else given
    if not isinstance(label, str | int):
        raise TypeError(f"{label!r} is no label")
    return str(label)
