"""The spec of a run: its task, data, model, training and seed, whole and validated."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator, model_validator

from heedful.data.readers.reader import FILES
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.objectives import kind_of
from heedful.objectives.head_terms import HeadTerms
from heedful.objectives.objective import numbers_of
from heedful.safe.opening import content
from heedful.safe.plain_data import yaml_of
from heedful.tasks import task_of
from heedful.tasks.task import Task
from heedful.training.spec.training_spec import TrainingSpec

RECIPE = "recipe:"  # begins the name of what is trained first, with changes: "recipe:resnet training.steps=500"
LIKE = "start"  # as model.family: the model is as the one that it begins with
Seed = Annotated[int, Field(ge=0, lt=2**63)]

MOVED = (*(one.name for one in fields(HeadTerms)), "smoothing", "consistency", "guidance")  # from training
LARGEST = 1 << 16  # bytes of a YAML file; the longest here has two thousand


class Expected(BaseModel):
    """The score that a recipe reaches, how long it takes, and where that was measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    score: dict[str, float]
    """The scores by name."""
    seconds: float
    """The duration in seconds."""
    where: str
    """The hardware it was measured on."""
    seeds: dict[str, list[float]] = {}
    """The scores with seeds 2, 3 and so on."""
    note: str = ""
    """What else belongs to the figure: what others reach, and what is included in the time."""


class RunSpec(BaseModel):
    """One YAML file: everything that a run depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    about: str = ""
    """What the recipe does, in a line."""
    task: str
    """The task, such as `classify` or `translation`."""
    data: Any
    """The data: a name or a path, or keys of its own; see the readers."""
    model: dict[str, Any]
    """The model: its family and that family's keys."""
    training: TrainingSpec = TrainingSpec()
    """How long and how fast the model learns; see training."""
    objective: Any = {}
    """The objective's keys: weights of losses, or the name of another objective."""
    metrics: list[str] = []
    """Metrics that are reported beside the task's own."""
    decoding: Decoding = Decoding()
    """How answers are searched for; see decoding."""
    start: str | dict[str, str] = ""
    """What the weights start from: a run, a model folder or `recipe:NAME`, trained first; or one for each part."""
    compare: list[Literal["scratch", "probe"]] = []
    """Comparisons that are trained too: `scratch` (no start) and `probe` (only the output layer learns)."""
    teacher: str = ""
    """A run whose model teaches this one by distillation, or `recipe:NAME`, which is trained first."""
    export: list[Literal["hf", "onnx"]] = []
    """Layouts in which the model is also written, beside `model/`."""
    seed: Seed = 1
    """The seed of weights, order of samples, dropout and all else that is random."""
    expected: Expected | None = None
    """The score and the time that were measured for the recipe."""

    @field_validator("compare", "export", mode="before")
    @classmethod
    def _one_will_do(cls, given: Any) -> Any:
        return ([given] if given else []) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _what_is_compared_has_a_start(self) -> RunSpec:
        if self.compare and not self.start:
            word = self.compare[0]
            raise ValueError(f"compare={word} measures what a start is worth; give start=FOLDER")
        return self

    @property
    def stages(self) -> bool:
        """Whether something is to be settled before it: what is trained first, or a model as the one it begins with."""
        return any(str(word).startswith(RECIPE) for word in (self.start, self.teacher)) or self.is_like_its_start

    @property
    def is_like_its_start(self) -> bool:
        """Whether its model is as the one that it begins with."""
        return self.model.get("family") == LIKE

    @property
    def whole_start(self) -> str:
        """The folder that the model as a whole begins with."""
        return self.start if isinstance(self.start, str) else ""

    @property
    def part_starts(self) -> dict[str, str]:
        """The folder that each part begins with, by its path."""
        return self.start if isinstance(self.start, dict) else {}

    def text(self) -> str:
        """The whole spec as YAML."""
        values = self.model_dump(mode="json", exclude_none=True)
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)


def reader_of(task: str, data: Any) -> type[BaseModel]:
    """The reader of a task's data, whose keys they have: by their name, alone or among keys."""
    name = data.get("name", FILES) if isinstance(data, dict) else data
    reader: type[BaseModel] = task_of(task).reader(str(name))
    return reader


@cache
def reading(reader: type[BaseModel], objective: type) -> type[RunSpec]:
    """The spec of runs whose data a reader reads, and whose losses an objective judges by its own numbers."""
    numbers = numbers_of(objective, HeadTerms)
    return create_model("RunSpec", __base__=RunSpec, data=(reader, ...), objective=(numbers, numbers()))


def reading_of(values: dict[str, Any]) -> type[RunSpec]:
    """The spec of a run of such values."""
    task = values.get("task")
    if not isinstance(task, str) or "data" not in values:
        return RunSpec
    return reading(reader_of(task, values["data"]), objective_of(task_of(task), values.get("objective")))


def objective_of(task: Task, numbers: Any) -> type:
    """The objective of a run: that of its task, or the one that is named among the numbers."""
    return kind_of(task.objective, numbers.get("name") if isinstance(numbers, dict) else None)


def validate_spec(values: dict[str, Any], where: str = "", kind: type[RunSpec] | None = None) -> RunSpec:
    """The spec of values as read from YAML, or a refusal that names the key, and the file where that is to blame."""
    kind = kind or reading_of(values)
    training = values.get("training")
    for key in [key for key in MOVED if isinstance(training, dict) and key in training]:
        raise Refusal(f"training.{key} is a number of the objective's; write objective.{key}={(training or {})[key]}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        from heedful.models.refusals import refusal

        refused = refusal(error, "", kind)
        raise (Refusal(f"{where}: {refused}") if where else refused) from None


def is_yaml(name: str) -> bool:
    """Whether a recipe is given as a YAML file, and not by its name."""
    return name.endswith((".yaml", ".yml"))


def read_yaml(path: Path) -> dict[str, Any]:
    """The values of a YAML file."""
    try:
        values = yaml_of(content(path, LARGEST).decode("utf-8"))
    except FileNotFoundError:
        raise Refusal(f"{path} does not exist; `heedful recipes` lists what can be trained") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise Refusal(f"{path} cannot be read as YAML: {' '.join(str(error).split())}; mend it") from None
    if not isinstance(values, dict):
        raise Refusal(f"{path} is no recipe; it should hold task, data and model")
    return values
