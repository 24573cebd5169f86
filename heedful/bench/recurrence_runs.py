"""Runs of the recurrence bench: recipes that are trained, gone on with or read where finished, and measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from heedful.errors import Refusal
from heedful.metrics.bleu import Bleu
from heedful.pipelines.pipeline import unheard
from heedful.safe import outfile
from heedful.safe.json_and_tensors import read_json
from heedful.tasks.work import Work
from heedful.training import run
from heedful.training.loop import Interrupted
from heedful.training.record import rows
from heedful.training.run_folder import SPEC
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import RunSpec

BOUNDS = (8, 11, 14, 18)  # words of sources, up to which each group goes; a last one has all that are longer
BEAMS = 5


@dataclass(frozen=True)
class Translated:
    """What a translator came to: BLEU greedily and with beams, also by the length of the source, and what it cost."""

    name: str
    seed: int
    weights: int
    bleu: dict[str, float]  # by the search
    by_length: dict[str, float]  # of beams
    operations: float
    seconds: float
    tokens_a_second: float
    reached: list[tuple[float, float]]  # seconds, and BLEU on validation
    device: str

    def table(self, base: str) -> str:
        """Lines for people."""
        found = ", ".join(f"{search} {score:.2f}" for search, score in self.bleu.items())
        groups = ", ".join(f"{words}: {score:.1f}" for words, score in self.by_length.items())
        times = ", ".join(f"{score:.1f} at {seconds:,.0f} s" for seconds, score in self.reached)
        cost = (
            f"{self.operations:.2e} FLOPs, {self.seconds:,.0f} s, {self.tokens_a_second:,.0f} tokens/s, {self.device}"
        )
        return (
            f"{self.name}, seed {self.seed}, {self.weights:,} weights: BLEU {found}\n  by words: {groups}\n"
            f"  {cost}\n  on validation: {times}"
        )

    def to_json(self, base: str) -> dict[str, Any]:
        """The same as JSON's own types."""
        return {"case": f"{self.name}, seed {self.seed}", **asdict(self)}


@dataclass(frozen=True)
class Named:
    """What a recurrent cell makes of names: its scores, and how far back an answer depends on their letters."""

    cell: str
    seed: int
    accuracy: float
    balanced_accuracy: float
    gradient: list[float]  # by distance, as a share of the last letter's

    def table(self, base: str) -> str:
        """A line for people."""
        shares = " ".join(f"{share:.2f}" for share in self.gradient[:12:2])
        scores = f"accuracy {100 * self.accuracy:.2f} %, mean of classes {100 * self.balanced_accuracy:.2f} %"
        return f"{self.cell:5s} seed {self.seed}: {scores}; gradient 0, 2, 4 ... letters back: {shares}"

    def to_json(self, base: str) -> dict[str, Any]:
        """The same as JSON's own types."""
        return {"case": f"names, {self.cell}, seed {self.seed}", **asdict(self)}


def train_recipe(recipe: str, changes: Sequence[str], folder: Path) -> tuple[RunSpec, dict[str, Any]]:
    """A recipe trained in a folder, gone on with where it was killed, or read where it is finished."""
    asked = recipes.resolve(recipe, list(changes))
    try:
        return asked, run.train(asked, folder, (folder / SPEC).exists(), run.device())
    except Interrupted:  # it is saved, and the same command goes on
        raise KeyboardInterrupt from None


def translate(name: str, recipe: str, changes: Sequence[str], folder: Path) -> Translated:
    """A translator, trained and measured on its test split."""
    asked, came = train_recipe(recipe, changes, folder)
    model, task = run.load_trained(folder)
    model.to(run.device())
    test, times = task.reopen(asked.data, asked.seed), rows(folder / "timing.jsonl")
    scores, groups = {}, {}
    for beams in (1, BEAMS):
        search = asked.decoding.model_copy(update={"beams": beams})
        learned: Any = task.learned
        learned = learned.searched_by(search)
        results = task.pipeline.results(model, test.test, learned, unheard)
        groups = {
            words: bleu_of(some, learned)
            for words, some in by_words(list(zip(test.test, results, strict=True))).items()
        }
        scores["greedy" if beams == 1 else f"beam {beams}"] = groups.pop("all")
    speed = median(one["samples_a_second"] for one in times) * tokens_of(task, test.train)
    reached = [
        (next(time["seconds"] for time in times if time["step"] >= row["step"]), row["bleu"])
        for row in rows(folder / "metrics.jsonl")
        if row["split"] == "valid"
    ]
    cost = {"operations": came["operations"], "seconds": times[-1]["seconds"], "device": times[-1]["device"]}
    return Translated(name, asked.seed, came["weights"], scores, groups, tokens_a_second=speed, reached=reached, **cost)


def by_words(pairs: Sequence[Any]) -> dict[str, list[Any]]:
    """Samples with their results, all of them, and by how many words their sources have."""
    bounds = (0, *BOUNDS, 10**9)
    names = [f"up to {BOUNDS[0]}", *(f"{low + 1} to {high}" for low, high in pairwise(BOUNDS))]
    made: dict[str, list[Any]] = {"all": list(pairs)}
    for name, low, high in zip([*names, f"above {BOUNDS[-1]}"], bounds, bounds[1:], strict=False):
        some = [pair for pair in pairs if low < len(pair[0].texts.source.split()) <= high]
        made |= {name: some} if some else {}
    return made


def bleu_of(pairs: Sequence[Any], learned: Any) -> float:
    """BLEU of samples and their results."""
    metric = Bleu()
    metric.update([sample for sample, _ in pairs], [said for _, said in pairs], learned)
    return metric.compute()["bleu"]


def tokens_of(task: Work, train: Sequence[Any]) -> float:
    """How many tokens of its target a sample has, END among them."""
    some = [train[at] for at in range(min(len(train), 1000))]
    return float(np.mean([len(one.target) + 1 for one in some]))


def tell_names(cell: str, changes: Sequence[str], folder: Path) -> Named:
    """A cell that reads names, trained and measured."""
    from heedful.tasks.text.name_classification import GRADIENT

    asked, came = train_recipe("names", [f"model.cell={cell}", *changes], folder)
    model, task = run.load_trained(folder)
    samples = task.reopen(asked.data, asked.seed).test
    scores = came["scores"]
    gradient = GRADIENT.measured(model, samples, task.learned)
    return Named(cell, asked.seed, scores["accuracy"], scores["balanced_accuracy"], gradient)


def keep(path: Path, kind: Callable[..., Any], asked: Sequence[str], make: Callable[[], Any]) -> Any:
    """What was measured before and lies in a file; else it is measured, and put there last of all."""
    if path.exists():
        held = read_json(path)
        if held["asked"] != list(asked):
            raise Refusal(f"{path} was measured with {' '.join(held['asked'])}; choose another out=DIR")
        return kind(**held["found"])
    made = make()
    outfile.write(path, json.dumps({"asked": list(asked), "found": asdict(made)}, indent=1) + "\n")
    return made
