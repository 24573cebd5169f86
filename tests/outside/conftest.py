"""A package of a user's own, as pip would have installed it: its parts are found by entry points."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful import registry
from heedful.cli import main
from heedful.models import FAMILIES
from heedful.tasks import TASKS

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
ENTRY_POINTS = """
[heedful.families]
captioner = tests.outside.captioner:FAMILY
gru_reader = tests.outside.recurrent_translator:ENCODER
gru_writer = tests.outside.recurrent_translator:DECODER

[heedful.tasks]
captions = tests.outside.captioner:TASK
recurrent-translation = tests.outside.recurrent_translator:TASK
"""
Program = Callable[..., str]


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the package is installed."""
    place = tmp_path_factory.mktemp("packages")
    (place / "outside-1.0.dist-info").mkdir()
    (place / "outside-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (place / "outside-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    return place


@pytest.fixture(autouse=True)
def installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For these tests alone the package is installed: here, and in the processes that they start."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(package), str(ROOT))))
    monkeypatch.syspath_prepend(package)
    for parts in (FAMILIES, TASKS):
        monkeypatch.setattr(parts, "known", dict(parts.known))
    registry.packages.cache_clear()
    yield
    registry.packages.cache_clear()


@pytest.fixture(scope="session")
def trained(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run of a recipe of the package, trained once by a process of its own."""
    made: dict[str, Path] = {}

    def run(recipe: str) -> Path:
        if recipe not in made:
            out = tmp_path_factory.mktemp("runs") / recipe
            words = ["train", str(HERE / f"{recipe}.yaml"), "--out", str(out), "--device", "cpu"]
            where = {**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(ROOT)))}
            subprocess.run([sys.executable, "-m", "heedful", *words], env=where, check=True, capture_output=True)
            made[recipe] = out
        return made[recipe]

    return run


@pytest.fixture
def heedful(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program, called in this very process; gives what it prints."""

    def call(*words: object, status: int = 0, stdin: str = "") -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        said = capsys.readouterr()
        assert (left.value.code or 0) == status, said.err
        return said.err if status else said.out

    return call


def scores_of(run: Path) -> dict[str, Any]:
    """The scores of a finished run on samples that it never saw."""
    found: dict[str, Any] = json.loads((run / "result.json").read_text())["scores"]
    return found
