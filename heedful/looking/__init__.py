"""Looking: what a model attends to, on the fast path and without changing it, and pictures of it."""

from heedful.looking.look import Seen, attends, look

__all__ = ["Seen", "attends", "look"]
