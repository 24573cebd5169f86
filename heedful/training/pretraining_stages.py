"""Pretraining stages: teachers and initial models are trained before a run, and a model can take their shape."""

from __future__ import annotations

import json
import shlex
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.errors import Refusal
from heedful.formats import native
from heedful.models import FAMILIES
from heedful.models.specs import Spec
from heedful.models.vision.image_spec import ClassifierSpec
from heedful.training.adapt.freeze_and_lora import merge
from heedful.training.distributed.sharding import check
from heedful.training.prepare import Ready, prepare
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import RECIPE, RunSpec
from heedful.training.trained_run import leave

FIRST = ("start", "teacher")  # keys of a run that may name what is trained first
OF_DATA = ClassifierSpec.model_fields.keys() - Spec.model_fields.keys()  # and not of what was learned
GUESSING = {
    "vocab",
    "tokenizer_width",
    "mask_ratio",
}  # what a model has to tell hidden patches by, which a classifier is not asked

Train = Callable[[RunSpec, Path], object]


def foresee(run: RunSpec, out: Path, place: torch.device) -> None:
    """Refuses a run before its teacher or initial model is trained, where it would be refused afterwards."""
    if not any(str(getattr(run, key)).startswith(RECIPE) for key in FIRST):
        return
    with tempfile.TemporaryDirectory() as aside, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all is opened again, and warned of then
        try:
            try_run(run, Path(aside) / out.name, place)
        except Refusal as refused:
            raise Refusal(str(refused).replace(aside, str(out.parent))) from None


def try_run(run: RunSpec, out: Path, place: torch.device) -> Ready:
    """Prepares a run with untrained models in the place of its teacher and its initial model."""
    ready = prepare(settle(run, out, lambda spec, to: write_unlearned(spec, to, place)), place)
    check(ready.model, run)
    return ready


def write_unlearned(run: RunSpec, out: Path, place: torch.device) -> None:
    """Writes the folder that a run would leave if it learned nothing."""
    ready = try_run(run, out, place)
    merge(ready.model)
    task = ready.task.calibrated(ready.model, replace(ready.splits, valid=ready.splits.valid[:1]))
    leave(task.inference_model(ready.model), task, out / "model")


def settle(run: RunSpec, out: Path, train: Train) -> RunSpec:
    """Trains the recipes that a run names, beside its own folder, and gives the run with their folders instead."""
    for key in FIRST:
        word = str(getattr(run, key))
        if word.startswith(RECIPE):
            folder = str(beside(out, key))
            train(run_of_recipe(word, run), Path(folder))
            run = run.model_copy(update={key: folder})
            if run.data.tokens_of == word:
                run = run.model_copy(update={"data": run.data.with_tokens_of(folder)})
    if run.is_like_its_start:
        run = run.model_copy(update={"model": like(run)})
    return run


def beside(out: Path, word: str) -> Path:
    """The folder of a run that belongs to another: runs/deit-teacher for runs/deit."""
    return out.with_name(f"{out.name}-{word}")


def run_of_recipe(word: str, run: RunSpec) -> RunSpec:
    """The run of a recipe that is trained before another run, on the data of that run unless its changes name others.

    Changes of data are kept; images are varied and words cut as the recipe itself says.
    """
    try:
        name, *changes = shlex.split(word.removeprefix(RECIPE))
    except ValueError:
        raise Refusal(f"{word!r} does not name a recipe; write recipe:NAME, for instance recipe:resnet") from None
    keys = [recipes.parse(change)[0] for change in changes]
    here = [] if "data" in keys else [f"data={json.dumps(run.data.name)}"]  # of which the recipe may have a version
    other = recipes.resolve(name, [*here, *changes])
    if "data" in keys and other.data.name != run.data.name:
        return other.model_copy(update={"seed": run.seed, "expected": None})
    own = {"augment", "tokenizer", *(key.split(".")[1] for key in keys if key.startswith("data."))}
    shared = keys_of(other) & keys_of(run) - own
    data = other.data.model_copy(update={name: getattr(run.data, name) for name in shared})
    return other.model_copy(update={"data": data, "seed": run.seed, "expected": None})


def keys_of(run: RunSpec) -> set[str]:
    """The keys of a run's data that mean something to its task."""
    return set(type(run.data).model_fields)


def like(run: RunSpec) -> dict[str, Any]:
    """The keys of the initial model of a run, without those that the data say and those of masked modelling."""
    if not run.whole_start:
        raise Refusal("model.family=start copies the spec of the model that the run begins with; add start=DIR")
    spec = native.load(run.whole_start, check=False).spec
    assert isinstance(spec, Spec)
    told = FAMILIES[spec.family].becomes(spec)
    known = FAMILIES[told["family"]].spec.model_fields.keys() - OF_DATA - GUESSING - {"family"}
    there = {key: value for key, value in spec.model_dump(exclude_none=True).items() if key in known}
    return there | told | run.model | {"family": told["family"]}
