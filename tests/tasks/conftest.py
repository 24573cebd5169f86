"""The recipe `translate`, trained on its toy once for all tests that ask for it."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from torch import nn

from heedful.data.splits import Splits
from heedful.tasks import Translation
from heedful.tasks.pairs import Encoded
from heedful.training import run
from tests.recipes.toys import toy


@dataclass(frozen=True)
class Translator:
    """A trained model, its task and the samples of its run."""

    out: Path
    model: nn.Module
    task: Translation
    splits: Splits[Encoded]

    @property
    def sources(self) -> list[str]:
        """What it was tested on."""
        return [sample.texts.source for sample in self.splits.test]

    @property
    def targets(self) -> list[str]:
        """How that should be translated."""
        return [sample.texts.target for sample in self.splits.test]


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    trained = toy("translate", tmp_path_factory)
    model, task = run.trained(trained.out)
    assert isinstance(task, Translation)
    return Translator(trained.out, model, task, task.reopen(trained.spec.data, trained.spec.seed))
