"""Recipes grouped by what one wants to do, each with what was measured: score, spread over seeds, time, hardware."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.metrics.metric import score_text
from heedful.tasks import task_of
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import Expected, RunSpec

GOALS = {
    "Translate, summarise and rewrite": ("translation", "summarisation", "pairs"),
    "Classify and tag text, and answer questions": (
        "classify",
        "classify-several",
        "tag",
        "answer",
        "sequences",
        "names",
    ),
    "Write text and chat": ("language-modelling", "chat"),
    "Pretrain on unlabelled text": ("masked-lm", "span-corruption", "infilling", "word2vec", "glove"),
    "Classify images": ("image-classification", "architecture-search"),
    "Pretrain on unlabelled images": (
        "self-distillation",
        "masked-autoencoding",
        "masked-image-modelling",
        "image-tokenizer",
    ),
    "Sets, series and numbers": ("sets", "series", "in-context"),
}
OTHERS = "Recipes of installed packages"


@dataclass(frozen=True)
class Version:
    """A recipe with its own data or with other data that it has settings for, as it is called and what to expect."""

    recipe: str
    data: str  # nothing for the recipe's own
    run: RunSpec

    @property
    def command(self) -> str:
        """How it is trained."""
        return f"heedful train {self.recipe}{f' data={self.data}' if self.data else ''}"

    @property
    def score(self) -> str:
        """The scores to expect, with their names."""
        return ", ".join(f"{name} {shown}" for name, shown in self.shown(self.expected.score.items()))

    @property
    def spread(self) -> str:
        """The scores with other seeds."""
        rows = ((name, value) for name, values in self.expected.seeds.items() for value in values)
        return ", ".join(shown for _, shown in self.shown(rows))

    @property
    def time(self) -> str:
        """How long it takes, and on what."""
        seconds = self.expected.seconds
        return f"{f'{seconds / 60:.0f} min' if seconds >= 120 else f'{seconds:.0f} s'} on {self.expected.where}"

    @property
    def expected(self) -> Expected:
        """What was measured; nothing where nobody did."""
        return self.run.expected or Expected(score={}, seconds=0.0, where="hardware that nobody named")

    def shown(self, scores: object) -> Iterator[tuple[str, str]]:
        """Scores as people read them."""
        metrics = task_of(self.run.task).metrics
        for name, value in scores:  # type: ignore[attr-defined]
            yield name, score_text(name, value, metrics)


def versions(recipe: str) -> list[Version]:
    """A recipe with its own data, and with each other set that it has settings for."""
    words = {"": [], **{word: [f"data={word}"] for word in recipes.sets(recipe)}}
    return [Version(recipe, word, recipes.resolve(recipe, changes)) for word, changes in words.items()]


def by_goal() -> dict[str, list[list[Version]]]:
    """All recipes, each with its versions, by what they are for."""
    found: dict[str, list[list[Version]]] = {goal: [] for goal in (*GOALS, OTHERS)}
    goals = {task: goal for goal, tasks in GOALS.items() for task in tasks}
    for one in map(versions, recipes.names()):
        found[goals.get(one[0].run.task, OTHERS)].append(one)
    return {goal: some for goal, some in found.items() if some}
