"""The laws of recipes: what a recipe says is understood, reads back from its run, and states scores that there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from heedful.tasks import task_of
from heedful.testing.broken_law import law
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import validate_spec


def reads_back(recipe: str, changes: Sequence[str]) -> None:
    """A recipe is taken at its word, and so is the run.yaml of its run."""
    spec, said = recipes.resolve(recipe, changes), recipes.values(recipe)
    toy = said.pop("toy", None) or {}
    for left_out in ("sets", "others", *(("expected",) if changes else ())):  # each version expects its own scores
        said.pop(left_out, None)
    resolved = spec.model_dump(mode="json")
    assert recipes.merge_values(resolved, recipes.with_version(said, toy) if changes else said) == resolved
    assert validate_spec(yaml.safe_load(spec.text())) == spec, "the run.yaml of its run reads otherwise"


def scores_are_known(recipe: str, changes: Sequence[str]) -> None:
    """The scores to expect are scores of its task, the one to choose by among them."""
    spec = recipes.resolve(recipe, changes)
    assert spec.expected is not None, "it states no score; give it expected: {score: {...}, seconds: ..., where: ...}"
    watch = task_of(spec.task).watch
    assert watch in spec.expected.score, f"it does not state {watch}, by which its task chooses"
    assert spec.expected.seconds > 0 and spec.expected.where, "it does not say how long it takes, and where"


def check_recipe(recipe: str | Path) -> None:
    """Holds a recipe to every law, by its name or as a YAML file, and so its toy."""
    name = str(recipe)
    with law(name, "it is a recipe that is known or can be read"):
        said = recipes.values(name)
    versions: list[list[str]] = [[], ["data=toy"]] if said.get("toy") else [[]]
    for changes in versions:
        with law(name, "a recipe is taken at its word"):
            reads_back(name, changes)
        with law(name, "a recipe states the scores to expect"):
            scores_are_known(name, changes)
