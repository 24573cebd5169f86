"""Readers: data become samples, by readers that own their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.registry import Registry

if TYPE_CHECKING:
    from heedful.data.readers.reader import Reader

# Data by their names, beside those that a task's own record reads; a reader says which tasks take its samples.
READERS: Registry[type[Reader]] = Registry("data", "heedful.readers", {})
