"""Every example of docs/adding.md is written as a package, named in runs, listed, and held to the laws."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from heedful import registry
from heedful.cli import main
from heedful.data.readers import READERS
from heedful.formats.layout_registry import LAYOUTS
from heedful.metrics import METRICS
from heedful.models import FAMILIES
from heedful.models.part_tables import MASKS, MECHANISMS
from heedful.objectives import OBJECTIVES
from heedful.tasks import TASKS
from heedful.testing import check
from heedful.training.spec.recipes import RECIPES
from tests.architecture.examples import PACKAGE, PAGE, ROOT, Example, examples, install, programs, run

SHORT = ["training.steps=4", "training.evaluate_every=2", "training.save_every=4", "training.warmup=0"]
SPREAD = "{task: spread, data: {name: clouds, samples: 400, held_out: 80}, model: {}}\n"
KINDS = ["mechanism", "mask", "family", "task", "reader", "metric", "objective", "recipe", "format"]
DECORATED = """
import runpy
from heedful import models
from heedful.models.part_tables import MECHANISMS
parts = runpy.run_path({path!r})
MECHANISMS.register("cosine")(parts["Cosine"])
model = models.build("predictor", vocab=9, classes=2, width=8, heads=2, depth=1, mechanism="cosine")
assert any(type(part).__name__ == "Cosine" for part in model.modules())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages, in which that of the page lies."""
    folder = tmp_path_factory.mktemp("site")
    install(folder, examples())
    return folder


@pytest.fixture(scope="module")
def installed(site: Path) -> Iterator[None]:
    """The same folder in this process, as long as these tests last: starting one takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        for one in (MECHANISMS, MASKS, FAMILIES, TASKS, READERS, METRICS, OBJECTIVES, RECIPES, LAYOUTS):
            patch.setattr(one, "known", dict(one.known))
        registry.packages.cache_clear()
        yield
    registry.packages.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def here(words: list[str], folder: Path) -> tuple[int, str, str]:
    """Runs a command of heedful's in this process: its status, and what it says and notes."""
    said, noted = io.StringIO(), io.StringIO()
    here, heard = contextlib.chdir(folder), (contextlib.redirect_stdout(said), contextlib.redirect_stderr(noted))
    with here, heard[0], heard[1], warnings.catch_warnings(action="ignore"), pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code or 0), said.getvalue(), noted.getvalue()


def heedful(words: list[str], folder: Path) -> str:
    status, said, noted = here(words, folder)
    assert status == 0, f"heedful {shlex.join(words)}\n{said}{noted}"
    return said


def test_the_page_adds_each_kind_of_part() -> None:
    assert f"    {SPREAD}" in PAGE.read_text(encoding="utf-8")
    assert [example.kind for example in examples()] == KINDS


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("example", examples(), ids=lambda one: one.kind)
def test_the_commands_of_an_example_run_and_leave_their_mark(example: Example, tmp_path: Path) -> None:
    (tmp_path / "spread.yaml").write_text(SPREAD, encoding="utf-8")
    for at, command in enumerate(example.commands):
        words = shlex.split(command)[1:]
        if words[0] == "train":
            words += ["--out", "run", *SHORT]
        heedful(["run" if word == "RUN" else word for word in words], tmp_path)
        if at == 0:
            said = (tmp_path / "run" / "run.yaml").read_text(encoding="utf-8")
            assert example.name in said or example.kind in ("recipe", "format")
    if example.kind == "metric":
        assert "top_two" in json.loads((tmp_path / "run" / "result.json").read_text())["scores"]
        assert "top_two" in heedful(["eval", "run"], tmp_path)
    if example.kind == "format":
        assert json.loads((tmp_path / "exported" / "config.json").read_text())["model_type"] == example.name


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("example", examples(), ids=lambda one: one.kind)
def test_an_example_obeys_the_laws(example: Example) -> None:
    if example.kind == "recipe":
        return check(example.name)
    module, _, attribute = example.place.partition(":")
    check(getattr(import_module(module), attribute), on="sets" if example.kind in ("metric", "objective") else None)


@pytest.mark.usefixtures("installed")
def test_what_packages_bring_is_listed(tmp_path: Path) -> None:
    kinds = {row["name"]: row for row in json.loads(heedful(["attention", "list", "--json"], tmp_path))}
    assert kinds["cosine"]["kind"] == "mechanism" and kinds["dilated"]["kind"] == "mask"
    assert "cosine " in heedful(["attention", "list"], tmp_path)
    assert "rings-small" in [row["name"] for row in json.loads(heedful(["recipes", "--json"], tmp_path))]


def test_a_part_is_registered_by_a_decorator_too(site: Path, tmp_path: Path) -> None:
    done = run(["-c", DECORATED.format(path=str(site / PACKAGE / "cosine.py"))], tmp_path, ROOT)
    assert done.returncode == 0, done.stderr


def test_a_model_with_a_part_of_a_package_is_refused_where_the_package_is_not(site: Path, tmp_path: Path) -> None:
    words = ["-m", "heedful", "predict", "run", "0.1,0.2; 0.3,0.4"]
    train = ["-m", "heedful", "train", "sets", "data=toy", "model.mechanism=cosine", "--out", "run", *SHORT]
    for command in (train, words):
        assert run(command, tmp_path, ROOT, site).returncode == 0
    done = run(words, tmp_path, ROOT)
    assert done.returncode == 2 and "unknown mechanism 'cosine'" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_recipe_of_a_package_runs_none_of_its_code(tmp_path: Path) -> None:
    example = next(one for one in examples() if one.kind == "recipe")
    install(tmp_path, [example])
    (tmp_path / PACKAGE / "__init__.py").write_text("raise SystemExit('code was run')\n", encoding="utf-8")
    (tmp_path / "here").mkdir()
    done = run(["-m", "heedful", "recipes"], tmp_path / "here", ROOT, tmp_path)
    assert done.returncode == 0 and example.name in done.stdout
    (tmp_path / PACKAGE / example.file).unlink()
    done = run(["-m", "heedful", "train", example.name], tmp_path / "here", ROOT, tmp_path)
    assert done.returncode == 2 and f"recipe {example.name!r} should be in the package" in done.stderr


def test_a_package_that_cannot_be_imported_is_refused_by_its_name(tmp_path: Path) -> None:
    example = examples()[0]
    install(tmp_path, [example])
    (tmp_path / PACKAGE / example.file).write_text("import nothing_of_the_kind\n", encoding="utf-8")
    done = run(["-m", "heedful", "attention", "list"], tmp_path, ROOT, tmp_path)
    assert done.returncode == 2 and "mechanism 'cosine' of the package my_parts cannot be imported" in done.stderr


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["data=rings"], "data=rings has no samples for task 'series'; its tasks are: sets"),
        (["metrics=[top_two]"], "metrics=top_two cannot score the answers of task 'series'"),
        (["model.family=deep_sets"], "model.family=deep_sets cannot learn task 'series'"),
        (["objective.name=focl"], "unknown objective 'focl'; did you mean 'focal'?"),
        (["metrics=[skill_two]"], "unknown metric 'skill_two'"),
        (["metrics=[top_two,top_two]"], "metrics=top_two gives the score top_two, which is there already"),
    ],
)
def test_a_part_that_does_not_fit_a_task_is_refused(change: list[str], said: str, tmp_path: Path) -> None:
    status, _, noted = here(["train", "series", "data=toy", *change, *SHORT], tmp_path)
    assert status == 2 and said in noted and len(noted.strip().splitlines()) == 1


@pytest.mark.parametrize("name", programs())
def test_the_programs_of_the_page_run(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(programs()[name], encoding="utf-8")
    done = run([name], tmp_path, ROOT)
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout
