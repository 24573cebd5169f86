"""heedful: train any of the lectures' attention models on your own files, and see where they look."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.decoding.generate import generate
    from heedful.formats.native import load, save
    from heedful.looking import look
    from heedful.looking.drawn import draw
    from heedful.models import build
    from heedful.training.in_python import train

# Read when torch is loaded. Threads that wait sleep: where they spin for one another on cores that are busy with other
# work, each step waits for its turn at every loop, a hundred times as long (docs/decisions/training.md).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")  # what Apple's GPUs lack is made on the CPU

__version__ = "0.1.0"
__all__ = ["build", "draw", "generate", "load", "look", "save", "train"]

_PLACES = {
    "build": "heedful.models",
    "draw": "heedful.looking.drawn",
    "generate": "heedful.decoding.generate",
    "load": "heedful.formats.native",
    "look": "heedful.looking",
    "save": "heedful.formats.native",
    "train": "heedful.training.in_python",
}


def __getattr__(name: str) -> Any:
    """The public functions, imported when first used: `import heedful` alone is instant."""
    if name not in _PLACES:
        raise AttributeError(f"heedful has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_PLACES[name]), name)
