"""Older run folders (backward compatibility): what a run.yaml said before keys had owners, told as it is said now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.models import FAMILIES
from heedful.models.former_keys import brought_up_to_date
from heedful.tasks import FORMER
from heedful.training.spec.run_spec import MOVED, RunSpec, read_yaml, reader_of, reading_of, validate_spec

DATA = frozenset({  # one class held the keys of all data, and each run wrote all of them
    "name", "train", "valid", "test", "samples", "held_out", "longest", "shortest", "horizon", "dimensions",
    "split_seed", "languages", "form", "tokenizer", "merge_dropout", "too_long", "pixels", "channels", "broken",
    "augment", "document", "apart", "divide", "stride", "noise", "whole_words", "near", "negatives", "frequent",
    "bleu",
})  # fmt: skip


def begun_spec(path: Path) -> RunSpec:
    """The spec of a run that was begun, by its run.yaml, which may be older than the keys that there are now.

    A key of all data that the run's own reader does not have meant nothing, and is left out; so is a number of a loss
    that the task's objective does not have.
    """
    values = read_yaml(path)
    if not isinstance(values.get("task"), str) or not isinstance(values.get("data"), dict):
        return validate_spec(values, str(path))
    values["task"] = FORMER.get(values["task"], values["task"])
    known = reader_of(values["task"], values["data"]).model_fields
    one_class = "samples" in values["data"] and "samples" not in known  # whose held_out was of sets made here
    data = {
        key: value
        for key, value in values["data"].items()
        if (key in known or key not in DATA) and not (one_class and key == "held_out")
    }
    training, objective = numbers_moved(values)
    values = values | {"data": data} | ({"training": training, "objective": objective} if training else {})
    model = values.get("model")
    if isinstance(model, dict) and (family := str(model.get("family"))) in FAMILIES:
        values = values | {"model": brought_up_to_date(model, FAMILIES[family].spec.model_fields)}
    return validate_spec(values, str(path))


def numbers_moved(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What training and objective say, the numbers of losses among what is now the objective's."""
    training, objective = values.get("training"), values.get("objective", {})
    if not isinstance(training, dict) or not isinstance(objective, dict):
        return {}, {}
    known = reading_of(values).model_fields["objective"].annotation.model_fields  # type: ignore[union-attr]
    moved = {key: training[key] for key in MOVED if key in training and key in known}
    return {key: value for key, value in training.items() if key not in MOVED}, moved | objective
