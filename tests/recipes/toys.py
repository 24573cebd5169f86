"""Recipes run to their end on their toys, each once in a whole session."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from heedful.training import run, run_folder
from heedful.training.spec import recipes
from heedful.training.spec.run_spec import RunSpec

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Trained:
    """A recipe, run to its end on its toy."""

    spec: RunSpec
    out: Path
    result: dict[str, Any]


def toy(recipe: str, folders: pytest.TempPathFactory) -> Trained:
    """Trains once, however many folders of tests ask for it and however many processes share them."""
    shared = folders.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    spec, out = recipes.resolve(recipe, ["data=toy"]), shared / f"recipe-{recipe}"
    with FileLock(f"{out}.lock"):
        return Trained(spec, out, run.train(spec, out, (out / run_folder.RESULT).exists(), CPU))
