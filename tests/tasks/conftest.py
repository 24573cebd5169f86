"""The recipe `translate`, trained on its toy once for all tests that ask for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from torch import nn

from heedful.data.encoded_pairs import Encoded
from heedful.data.splits import Splits
from heedful.looking.alignment import Alignment
from heedful.pipelines.translation_pipeline import Translating, TranslationLearned
from heedful.tasks.work import Work
from heedful.training import run
from tests.recipes.toys import toy


@dataclass(frozen=True)
class Translator:
    """A trained model, its task and the samples of its run."""

    out: Path
    model: nn.Module
    task: Work
    splits: Splits[Encoded]

    @property
    def learned(self) -> TranslationLearned:
        """What is kept beside the model."""
        assert isinstance(self.task.learned, TranslationLearned)
        return self.task.learned

    @property
    def pipeline(self) -> Translating:
        """How the model is asked."""
        assert isinstance(self.task.pipeline, Translating)
        return self.task.pipeline

    def align(self, pairs: Sequence[tuple[str, str | None]]) -> Iterator[Alignment]:
        """Which words belong together in each pair."""
        return self.pipeline.align(self.model, pairs, self.learned)

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
    model, task = run.load_trained(trained.out)
    assert isinstance(task, Work)
    return Translator(trained.out, model, task, task.reopen(trained.spec.data, trained.spec.seed))
