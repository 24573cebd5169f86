"""Looking: what a model attends to, on the fast path and without changing it, and pictures of it."""

from heedful.looking.look import Seen, look

__all__ = ["Seen", "look"]
