"""Training from Python: samples that lie in memory, a task or a model of one's own, and callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from torch import nn

from heedful.data.readers.in_memory import in_memory
from heedful.data.readers.reader import FILES, MEMORY
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking.page import Example
from heedful.results import Result
from heedful.tasks import task_of
from heedful.tasks.task import Task
from heedful.training import run
from heedful.training.callbacks import Callback
from heedful.training.prepare import Given
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import RunSpec, is_yaml, objective_of, reading, validate_spec
from heedful.training.trained_run import usable, work_of


@dataclass(frozen=True)
class Trained:
    """A model that was trained from Python: asked, scored and looked into where it is, its run in a folder."""

    model: nn.Module
    task: Any  # at work: with what was learned of the data
    scores: Mapping[str, float]  # on the samples to test on
    folder: Path  # of the run: run.yaml, metrics.jsonl, report.html, checkpoints and model/

    def _repr_html_(self) -> str:
        from heedful.looking import notebook
        from heedful.training.report import learning, score_cards

        metrics = self.task.metrics
        return notebook.frame(str(self.folder), [score_cards(self.scores, metrics), learning(self.folder, metrics)])

    def predict(self, *inputs: Any) -> list[Result]:
        """The answer to each input, in order."""
        return list(self.task.predict(self.model, inputs))

    def evaluate(self, samples: Sequence[Any]) -> dict[str, float]:
        """The scores on other samples that lie in memory, each as those to learn from were given."""
        reader = in_memory(self.task.task.reader(FILES), Splits([], [], samples), {})
        scores: dict[str, float] = self.task.judging(reader).score(self.model, self.task.reopen(reader, 1).test)
        return scores

    def look(self, given: Any) -> Example:
        """Where every layer and head looks while the model answers one input."""
        example: Example = self.task.look(self.model, given)
        return example


def train(
    task: str | Task,
    samples: Any = None,
    *,
    model: nn.Module | Mapping[str, Any] | None = None,
    keys: Iterable[str] = (),
    out: str | Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    device: str | None = None,
) -> Trained:
    """Trains as `heedful train` does, and gives the trained model: `train("classify", [("so good", "pos"), ...])`.

    `task` is the name of a recipe or its YAML file, the name of a task, or a record of one's own. `samples` are splits,
    or a sequence or torch Dataset that is divided, a tenth to choose by and a tenth to test on; without them the
    recipe's own data are read.
    `model` gives keys of a spec, such as `{"family": "bert", "width": 64}`, or is a module of one's own. `keys` change
    the run as on the command line: `["training.steps=500"]`. The run goes to `out`, or to a folder of its own.
    """
    record = task if isinstance(task, Task) else None
    if others := [one for one in callbacks if not isinstance(one, Callback)]:
        raise Refusal(f"{others[0]!r} is not a callback; give an object of a class made from heedful's Callback")
    keys = list(keys)
    asked = asked_for(task, samples, keys)
    if isinstance(model, nn.Module):
        if told := [key for key in keys if key.startswith(("model", "start"))]:
            raise Refusal(f"a model of one's own is taken as it is; leave {told[0]} out")
        asked = asked.model_copy(update={"model": {}})
    elif model is not None:
        asked = asked.model_copy(update={"model": {**({} if "family" in model else asked.model), **model}})
    own = model if isinstance(model, nn.Module) else None
    place = Path(out) if out is not None else Path(mkdtemp(prefix="heedful-"))
    result = run.train(asked, place, resume, run.device(device), given=Given(record, own, tuple(callbacks)))
    work: Any
    made, work = usable(place, record) if own is None else (own, work_of(place / "model", record))
    return Trained(made.to(run.device(device)), work.measured_by(asked.metrics), result["scores"], place)


def asked_for(task: str | Task, samples: Any, keys: list[str]) -> RunSpec:
    """The run of a recipe, or of a task as it is where no recipe has its name, on samples that lie in memory."""
    here = [] if samples is None else [f"data={MEMORY}"]
    if isinstance(task, str) and (is_yaml(task) or task in recipes.names()):
        asked = recipes.resolve(task, [*here, *keys])
        record = task_of(asked.task)
    else:
        record = task if isinstance(task, Task) else task_of(task)
        values: dict[str, Any] = {"task": record.name, "data": {"name": MEMORY}, "model": {}}
        for key, value in map(recipes.parse, keys):
            recipes.put(values, key, value)
        asked = validate_spec(values, kind=reading(record.reader(FILES), objective_of(record, values.get("objective"))))
    if samples is None:
        return asked
    data = in_memory(record.reader(FILES), samples, asked.data.model_dump(exclude={"name"}, exclude_unset=True))
    kind = objective_of(record, dict(asked.objective))
    return reading(type(data), kind).model_validate({**dict(asked), "data": data})
