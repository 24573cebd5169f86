"""What a run left behind, to be scored, asked and looked into."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from heedful.data.readers.reader import FILES
from heedful.errors import Refusal
from heedful.formats import CARD, WEIGHTS, native, weights
from heedful.models import with_facts
from heedful.models.specs import LanguageSpec, Spec
from heedful.pipelines.use import Use
from heedful.safe.json_and_tensors import read_json
from heedful.safe.opening import inside
from heedful.safe.sealed_folders import seal, write_folder, write_tensors
from heedful.tasks import FORMER, USES, use_of, use_that_suits
from heedful.tasks.task import Task
from heedful.tasks.work import Work
from heedful.training.spec.recipes import TOY, parse, put, toy_data
from heedful.training.spec.run_spec import validate_spec

TASK = "task.json"


def leave(model: nn.Module, task: Work, folder: Path, card: str = "") -> None:
    """Writes a model, its task and its card to a folder, whole or not at all."""

    def fill(aside: Path) -> None:
        if isinstance(getattr(model, "spec", None), Spec):
            native.write_model(model, aside)
        else:  # of one's own: who made it has to make it again
            write_tensors(weights.state(model), aside / WEIGHTS)
        task.write(aside)
        if card:
            (aside / CARD).write_text(card, encoding="utf-8")
        seal(aside, without=[CARD])

    write_folder(folder, fill)


def load_trained(folder: Path) -> tuple[nn.Module, Work]:
    """The model and the task of a run folder, or of the `model/` in it."""
    model, use = usable(folder)
    if not isinstance(use, Work):
        raise Refusal(f"{folder} was not trained here, so that nothing says how to score it; predict and look take it")
    return model, use.measured_by((begun_run(folder) or {}).get("metrics", []))


def usable(folder: Path, record: Task | None = None) -> tuple[nn.Module, Use]:
    """The model of a folder and what it is used for: its task, or what its output answers."""
    place = native.model_folder(folder)
    model = native.load(place)
    known = native.is_public(place) or isinstance(model.spec, LanguageSpec)
    if known and not os.path.lexists(place / TASK):
        return model, use_of(model, place)
    task = work_of(place, record)
    values = model.spec.model_dump()  # type: ignore[union-attr,operator]
    for key, value in task.facts().items():
        unnamed = key == "processor" or (key == "labels" and values.get(key) is None)  # by the task, or by the model
        if not unnamed and with_facts(values, {key: value}) != values:
            raise Refusal(f"{place}: the task says {key}={value} and the model does not; copy or train it again")
    return model, use_that_suits(task, model.spec).adopted(model.spec)  # type: ignore[arg-type]


def work_of(place: Path, record: Task | None = None) -> Any:
    """The task of a model folder at work, as it was written beside the model; a record of one's own is given."""
    state = read_json(place / TASK)
    name = state.pop("task", None)
    name = FORMER.get(name, name) if isinstance(name, str) else name
    if record is None and (not isinstance(name, str) or name not in USES):
        raise Refusal(f"{place / TASK}: task {name!r} is not known; known: {', '.join(sorted(USES))}")
    try:
        return (record or USES[name]).read(place, state)
    except Refusal:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise Refusal(f"{place / TASK} is not whole: {error}; copy or train it again") from None


def reopen_run(
    folder: Path, task: Work, changes: Iterable[str], split: str, file: Path | None = None
) -> tuple[Work, Sequence[Any]]:
    """The samples that a trained model is to be scored on, and its task that judges them.

    They are those of its run, those that changes to `data` name, or all of a file; of a folder that is divided already,
    the part of the split.
    """
    values = begun_run(folder) or {"task": task.name, "model": {}, "data": {}}
    if file is not None:
        split, values["data"] = "test", data_of_file(values["data"], task, file, split)
    for key, value in map(parse, changes):
        if key.split(".")[0] not in ("data", "seed"):
            raise Refusal(
                f"{key} cannot be changed in a trained model; "
                "eval takes model.mechanism=..., data=..., data.test=..., data.apart=... and seed=..."
            )
        if (key, value) == TOY:
            values["data"] = small(values["data"])
        elif key == "data" and is_other_file(value, values["data"]):
            split, values["data"] = "test", data_of_file(values["data"], task, Path(value), split)
        else:
            put(values, key, value)
    if not values["data"]:
        raise Refusal(f"{folder} does not say what data it was trained on; name a file of them: heedful eval DIR FILE")
    run = validate_spec(values)
    reader = alone(run.data, split)
    found: Sequence[Any] = getattr(task.reopen(reader, run.seed), split)
    if not len(found):
        raise Refusal(f"data.{split} is not given; add data.{split}=..., or choose another --split")
    return task.judging(reader), found


def is_other_file(value: Any, data: dict[str, Any]) -> bool:
    """Whether a value of `data` names a file that a run did not learn from, of which nothing is held out."""
    return isinstance(value, str) and value != data.get("name") and Path(value).is_file()


def data_of_file(data: dict[str, Any], task: Work, file: Path, split: str) -> dict[str, Any]:
    """The data of a file that is tested on as a whole, read as those of a run were, as far as its reader can."""
    from heedful.data.formats.class_folders import sides_of

    known = task.task.reader(FILES).model_fields
    if "test" not in known:
        raise Refusal(f"task {task.name} has no samples in files; leave {file} out")
    sides = dict(zip(("train", "valid", "test"), sides_of(file), strict=False))
    part = sides.get(split, file) or sides.get("valid") or sides.get("test")
    own = {key: value for key, value in data.items() if key in known and key not in ("train", "valid")}
    return own | {"name": FILES, "test": str(part)}


def begun_run(folder: Path) -> dict[str, Any] | None:
    """The spec of the run that a folder belongs to, where it is there."""
    from heedful.training.spec.older_runs import begun_spec

    for place in (folder / "run.yaml", folder.resolve().parent / "run.yaml"):
        if place.is_file():
            return begun_spec(inside(place)).model_dump(mode="json", exclude_none=True)
    return None


def small(data: dict[str, Any]) -> dict[str, Any]:
    """The toy version of the data that a model was trained on."""
    made = toy_data(data.get("name", ""))
    if made is None:
        raise Refusal("data=toy is for models that were trained on data made here; name a file of your own: data=FILE")
    return made


def alone(data: Any, split: str) -> Any:
    """The data of one split, where it has a file of its own: the others need not be there any more."""
    if split == "train" or getattr(data, split, None) is None:
        return data
    others = {name: None for name in ("train", "valid", "test") if name != split}
    return data.model_copy(update={"name": "files"} | others)
