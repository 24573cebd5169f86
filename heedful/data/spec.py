"""Which data a run reads: a set made on the fly, the user's own files, or `toy`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

Many = Annotated[int, Field(ge=1, le=10_000_000)]


class Sides(BaseModel):
    """Two files that belong together line by line."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    source: str
    target: str


class DataSpec(BaseModel):
    """`data=toy`, `data=pairs.tsv`, or `data.train=... data.valid=... data.test=...`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = "files"  # toy, the name of a built-in set, a path, or `files` where train is given
    train: str | Sides | None = None
    valid: str | Sides | None = None
    test: str | Sides | None = None
    samples: Many = 20_000  # how many are made for training, where they are made
    held_out: Many = 2_000  # how many are made for testing; a quarter as many for validation
    shortest: Many = 4
    longest: Many = 24
    horizon: Many = 24  # steps of a series to forecast

    @model_validator(mode="before")
    @classmethod
    def _a_name_alone_will_do(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _lengths_make_a_range(self) -> DataSpec:
        if self.shortest > self.longest:
            raise ValueError(f"data.shortest={self.shortest} is above data.longest={self.longest}; swap them")
        return self
