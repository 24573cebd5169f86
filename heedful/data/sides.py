"""Parallel files: a source and a target that belong together line by line."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Sides(BaseModel):
    """Two files that belong together line by line, and a third where words are aligned by hand."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    source: str
    target: str
    alignment: str | None = None  # which words belong together: `0-0 1-2`, source and target from 0
