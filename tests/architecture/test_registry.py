"""A registry knows names without importing what they name, and takes parts of one's own beside those of the house."""

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from heedful import models, registry, tasks
from heedful.data import transforms
from heedful.errors import Refusal
from heedful.formats import layout_registry
from heedful.models import part_tables
from heedful.registry import Registry

EVERY = [
    part
    for room in (models, layout_registry, part_tables, tasks, transforms)
    for part in vars(room).values()
    if isinstance(part, Registry) and part.known
]
IMPORTED = """
import sys
import heedful.training.run
loaded = [name for name in sys.modules if name.startswith("heedful.")]
from heedful import models, tasks
print(len(list(models.FAMILIES)), len(list(tasks.TASKS)))
print(*sorted(name for name in sys.modules if name.startswith("heedful.") and name not in loaded))
print(*loaded)
"""
TRAINED = """
import sys
from heedful.cli import main
try:
    main([*"train reverse data=toy data.samples=300 data.held_out=40 training.steps=2 --out".split(), sys.argv[1]])
except SystemExit as left:
    assert not left.code
print(*(name for name in sys.modules if name.startswith("heedful.")))
"""


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry with parts of its own, and a package that brings two, one of them by a name that is taken."""
    brought = [EntryPoint("seven", "math:tau", "test.parts"), EntryPoint("three", "math:e", "test.parts")]
    monkeypatch.setattr(registry, "packages", lambda: EntryPoints(brought))
    return Registry("part", "test.parts", {"three": "math:pi", "none": None})


@pytest.mark.parametrize("parts", EVERY, ids=lambda parts: parts.group)
def test_every_name_of_every_registry_names_something(parts):
    assert all(part is not None or name == "none" for name, part in parts.items())


def test_names_are_known_without_an_import():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    counts, anew, loaded = done.stdout.splitlines()
    assert counts == f"{len(models.FAMILIES)} {len(tasks.TASKS)}"
    assert anew == "" and len(loaded.split()) <= 125  # 357 before names were lazy
    assert not {
        "heedful.models.vision.swin",
        "heedful.tasks.vision.image_classification",
        "heedful.attention.mechanisms.reformer",
    } & {*loaded.split()}


def test_a_run_imports_what_it_uses(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TRAINED, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert (tmp_path / "run" / "result.json").exists()
    assert "heedful.tasks.text.sequence_pairs" in loaded and len(loaded) <= 150
    assert not [
        name for name in loaded if name.startswith(("heedful.models.vision", "heedful.bench", "heedful.formats.hf"))
    ]


def test_a_package_brings_parts_and_stands_in_for_none_of_the_house(parts):
    assert [*parts] == ["three", "none", "seven"] and len(parts) == 3
    assert parts["seven"] > 6 and 3.1 < parts["three"] < 3.2 and parts["none"] is None
    assert "four" not in parts and parts.get("four") is None


def test_a_name_that_two_packages_bring_is_refused(monkeypatch):
    both = [EntryPoint("own", "math:tau", "test.parts"), EntryPoint("own", "cmath:tau", "test.parts")]
    monkeypatch.setattr(registry, "packages", lambda: EntryPoints(both))
    with pytest.raises(Refusal, match="part 'own' is brought by the packages math and cmath; remove all of them but"):
        Registry("part", "test.parts", {})["own"]


def test_a_part_of_ones_own_is_registered_once(parts):
    assert parts.register("own")(len) is len
    assert parts["own"] is len
    for taken in ("own", "three", "seven"):
        with pytest.raises(Refusal, match=f"part '{taken}' is known already; register yours by another name"):
            parts.register(taken)


def test_an_unknown_name_is_refused_with_the_nearest_one(parts):
    with pytest.raises(Refusal, match="unknown part 'sevn'; did you mean 'seven'\\? known: none, seven, three"):
        parts.named("sevn")


def test_a_word_that_a_package_offers_makes_a_model_with_its_part(monkeypatch):
    from heedful.attention.mechanisms import Softmax

    class Own(Softmax):
        """Softmax by another name."""

    monkeypatch.setattr(part_tables.MECHANISMS, "known", dict(part_tables.MECHANISMS.known))
    part_tables.MECHANISMS.register("own")(Own)
    model = models.build("predictor", vocab=9, classes=2, width=8, heads=2, depth=1, mechanism="own")
    assert any(isinstance(part, Own) for part in model.modules())
