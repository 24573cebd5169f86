"""Good folders, of which each bad one is a copy with one thing wrong, and the ways in which heedful reads them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch

import heedful
from heedful.formats import native
from heedful.models import build
from heedful.pipelines.pairs_learned import PairsLearned
from heedful.pipelines.scaled_series import ScaledSeries
from heedful.tasks import Task
from heedful.tasks.series import forecasting
from heedful.tasks.sets import set_classification
from heedful.tasks.text import sequence_pairs
from heedful.tasks.work import Work
from heedful.tokenizers import Tokenizer
from heedful.training import record, run, table, trained_run
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import RunSpec, read_yaml, validate_spec
from tests.training.runs import killed_at

SMALL = {"width": 8, "depth": 1, "heads": 2, "length": 16}
BEGUN = [
    "data=toy",
    "data.samples=12",
    "data.held_out=8",
    "model.width=8",
    "model.depth=1",
    "model.heads=1",
    "training.steps=2",
    "training.batch=4",
    "training.average=0.5",
]

Spoil = Callable[[Path], object]


@dataclass(frozen=True)
class Bad:
    """A folder that somebody made to do harm: what was done to a good one, how it is read, and what is then said."""

    spoil: Spoil
    said: str = ""  # of the line that it is refused with, as a pattern; nothing where it is whole and read
    good: str = "pairs"
    way: str = "load"
    unopened: tuple[str, ...] = field(default=())  # names that nobody may open


def task(name: str) -> tuple[Task | Work, dict[str, object]]:
    tokenizer = Tokenizer.of_characters(["abc"])
    return {
        "pairs": (
            Work(sequence_pairs.TASK, PairsLearned(tokenizer)),
            {"family": "transformer", "vocab": len(tokenizer)},
        ),
        "sets": (
            Work(set_classification.TASK, set_classification.SetLearned(("even", "odd"), 2)),
            {"family": "predictor", "channels": 2, "classes": 2, "norm": "batch"},
        ),
        "series": (
            Work(forecasting.TASK, ScaledSeries(2, 4, 2, (0.0, 0.0), (1.0, 1.0))),
            {"family": "forecaster", "channels": 2},
        ),
    }[name]


def make(place: Path, name: str) -> None:
    """Writes a good folder; `begun` is a run that was killed before it was finished, `run` a finished one."""
    if name in ("begun", "run"):
        spec = reverse()
        if name == "begun":
            with killed_at(run, "finish", 1):
                run.train(spec, place, False, torch.device("cpu"))
        else:
            run.train(spec, place, False, torch.device("cpu"))
        return
    if name == "gpt2":
        native.save(build("gpt", vocab=9, **SMALL), place, layout="hf")  # type: ignore[arg-type]
        return
    place.mkdir(parents=True)
    made, numbers = task(name)
    model = build(**SMALL | numbers)  # type: ignore[arg-type]
    native.write_model(model, place)
    made.write(place)


@cache
def reverse() -> RunSpec:
    return recipes.resolve("reverse", BEGUN)


def load(folder: Path) -> None:
    heedful.load(folder)


def beside(folder: Path) -> None:
    """A model, and the tokenizer that lies beside it when it is first used."""
    assert len(heedful.load(folder).tokenizer) > 0


def tokenizer(folder: Path) -> None:
    model = folder / "tokenizer.model"
    made = Tokenizer.read(model if model.exists() else folder / "tokenizer.json")
    made.decode(made.encode("a" * 40 + "!"))
    made.pieces(made.encode("abc"))


def resume(folder: Path) -> None:
    """As `heedful train RECIPE --resume` does, with nothing else asked for."""
    run.train(reverse(), folder, True, torch.device("cpu"), ())


def recipe(folder: Path) -> None:
    validate_spec(read_yaml(folder / "run.yaml"))


def lines(folder: Path) -> None:
    """As a run that goes on does with what it told before."""
    record.cut_back(folder / "metrics.jsonl", 1)


WAYS: dict[str, Callable[[Path], object]] = {
    "load": load,
    "beside": beside,
    "trained": trained_run.load_trained,
    "tokenizer": tokenizer,
    "begun": trained_run.begun_run,
    "recipe": recipe,
    "resume": resume,
    "table": table.row,
    "lines": lines,
}
GOOD = {"load": "sets", "beside": "pairs", "trained": "series", "tokenizer": "pairs", "begun": "run", "recipe": "run"}
WARM = [*((way, good) for way, good in GOOD.items()), ("table", "run"), ("resume", "begun"), ("trained", "pairs")]
WARM += [("trained", "sets"), ("load", "run"), ("load", "gpt2")]
