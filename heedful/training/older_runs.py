"""Older run folders (backward compatibility): what a run.yaml said before readers owned their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.data.data_spec import DataSpec
from heedful.models import FAMILIES
from heedful.models.former_keys import brought_up_to_date
from heedful.training.run_spec import RunSpec, read, reader_of, validated


def begun_spec(path: Path) -> RunSpec:
    """The spec of a run that was begun, by its run.yaml, which may be older than the keys of its data's reader.

    One class held the keys of all data then, and each run wrote all of them: those that its reader does not have meant
    nothing, and are left out.
    """
    values = read(path)
    if isinstance(values.get("task"), str) and isinstance(values.get("data"), dict):
        known = reader_of(values["task"], values["data"]).model_fields
        values = values | {"data": {key: value for key, value in values["data"].items() if key in known or new(key)}}
    model = values.get("model")
    if isinstance(model, dict) and (family := str(model.get("family"))) in FAMILIES:
        values = values | {"model": brought_up_to_date(model, FAMILIES[family].spec.model_fields)}
    return validated(values, str(path))


def new(key: Any) -> bool:
    """Whether no data ever had such a key."""
    return key not in DataSpec.model_fields
