"""Short runs of the recipes, and what they leave behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.training import run
from heedful.training.loop import Loop
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import RunSpec

CPU = torch.device("cpu")
CHANGES = {
    "data.samples": 60,
    "data.held_out": 16,
    "training.batch": 7,
    "training.steps": 23,
    "training.warmup": 5,
    "training.log_every": 5,
    "training.evaluate_every": 4,
    "training.save_every": 7,
}  # no two of these fall together: a checkpoint lies inside an epoch, a line of the log, and between evaluations
ON_FILES = {key: value for key, value in CHANGES.items() if key not in ("data.samples", "data.held_out")}
BY_TOKENS = {"training.tokens": 220, "data.tokenizer": "bpe(size=300)", "decoding.max_new_tokens": 8}  # for words

FEW = "data=toy training.steps=2 training.batch=8"
FIRST = {
    "classify-sst": {"start": f"recipe:classify-sst-phrases {FEW}"},
    "beit": {"teacher": f"recipe:dvae {FEW}"},
    "deit": {"teacher": f"recipe:resnet {FEW} model.width=4"},
    "finetune-images": {"start": f"recipe:mae {FEW} model.width=16 model.heads=2 model.depth=1"},
}  # what is trained before a run need not know anything


def short(recipe: str, **changes: Any) -> RunSpec:
    """A recipe cut short; `training__rate=1.0` changes training.rate."""
    words = BY_TOKENS if recipes.values(recipe)["task"] == "translation" else {}
    files = isinstance(changes.get("data"), Path) or any(key.startswith("data__train") for key in changes)
    made = ON_FILES if files else CHANGES
    asked = made | words | FIRST.get(recipe, {}) | {key.replace("__", "."): value for key, value in changes.items()}
    return recipes.resolve(recipe, ["data=toy", *(f"{key}={value}" for key, value in asked.items())])


def train(spec: RunSpec, out: Path, resume: bool = False) -> dict[str, Any]:
    return run.train(spec, out, resume, CPU)


def loop_of(out: Path, spec: RunSpec) -> Loop:
    ready = run.prepare(spec, CPU)
    return Loop(ready.run, ready.task, ready.splits, ready.model, out)


def first_samples(loop: Loop, count: int) -> list[Any]:
    return [loop.splits.train[at] for at in range(count)]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run folder that must not depend on when and where it was written, by name."""
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if path.name != "timing.jsonl" and "tensorboard" not in Path(name).parts
    }


def assert_same(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert one.keys() == other.keys()
    apart = [name for name in one if one[name] != other[name]]
    assert apart == [], apart


class Killed(BaseException):
    """A process that ended between two lines."""


@contextmanager
def killed_at(owner: Any, name: str, call: int) -> Iterator[None]:
    """Ends the process, as it were, when something is called for the nth time."""
    own, calls = getattr(owner, name), [0]

    def counted(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise Killed
        return own(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, counted)
        with pytest.raises(Killed):
            yield


class Silent:
    """A record that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def advance(self, step: int) -> None:
        pass

    @contextmanager
    def working(self, what: str, total: int = 0) -> Iterator[Callable[[int], None]]:
        yield lambda more: None

    def learned(self, *line: Any) -> None:
        self.lines.append(("learned", *line))

    def scored(self, *line: Any) -> None:
        self.lines.append(("scored", *line))

    def showed(self, *line: Any) -> None:
        self.lines.append(("showed", *line))

    def say(self, *line: Any) -> None:
        self.lines.append(("said", *line))
