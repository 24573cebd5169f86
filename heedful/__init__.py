"""heedful: train any of the lectures' attention models on your own files, and see where they look."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.decoding.generate import generate
    from heedful.formats.native import load, save
    from heedful.looking import look
    from heedful.looking.drawn import draw
    from heedful.models import build
    from heedful.training.in_python import train

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
