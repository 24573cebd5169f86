"""Imports go one way, nothing is named after nothing, and nothing in a file is ever executed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "heedful"

# Each row may import itself and the rows above it.
ORDER = (
    {"safe"},
    {"attention", "inputs", "blocks", "outputs"},
    {"models"},
    {"engines"},
    {"decoding"},
    {"tasks"},
    {"training"},
    {"cli", "studio", "testing"},
)
RANK = {name: rank for rank, row in enumerate(ORDER) for name in row}
BESIDE = {"looking", "tokenizers", "data"}  # these take tensors, strings and files, and know no model
NO_MODEL = {name for name, rank in RANK.items() if rank >= RANK["models"]}

SHARED = {"longformer", "rows"}  # a mask and a block of one paper; a task and what heads of it are taught by
PARTS = {"tasks", "objectives", "metrics", "pipelines", "views"}  # of one task, which may share its name
EMPTY_NAMES = {"utils", "util", "common", "core", "helpers", "helper", "misc"}
PICKLING = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
EXECUTING = {"eval", "exec", "torch.load", "torch.save", "yaml.load", "yaml.full_load", "yaml.unsafe_load"}


def modules(package: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package), ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name a module imports, in full, wherever in it the import stands."""
    here = ("heedful", *path.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: len(here) - node.level]) if node.level else ""
            origin = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                yield node.lineno, f"{origin}.{alias.name}"


def wrong_way(package: Path) -> Iterator[str]:
    for path, tree in modules(package):
        part = path.parts[0]
        for line, name in imported(path, tree):
            target = name.split(".")[1] if name.startswith("heedful.") else ""
            upward = part in RANK and RANK.get(target, 0) > RANK[part]
            if upward or (part in BESIDE and target in NO_MODEL):
                yield f"{path}:{line} {part} imports {name}"


def through_the_front(package: Path) -> Iterator[str]:
    """Imports of what heedful/__init__.py offers from inside it: they hide which way they go."""
    inside = {path.stem for path in package.iterdir()}
    for path, tree in modules(package):
        if path.parts[0] not in RANK.keys() - {"cli", "studio"} | BESIDE:
            continue
        for line, name in imported(path, tree):
            if name == "heedful" or (name.startswith("heedful.") and name.split(".")[1] not in inside):
                yield f"{path}:{line} imports {name}"


def used(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name that is called, or handed on to be called, as it is written: eval, torch.load."""
    owners = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name) and id(node) not in owners:
            yield node.lineno, node.id


def executing(package: Path) -> Iterator[str]:
    for path, tree in modules(package):
        for line, name in imported(path, tree):
            if name.split(".")[0] in PICKLING or name in EXECUTING:
                yield f"{path}:{line} imports {name}"
        for line, name in used(tree):
            if name in EXECUTING:
                yield f"{path}:{line} uses {name}"
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                yield f"{path}:{node.value.lineno} uses allow_pickle"


def named_after_nothing(package: Path) -> Iterator[str]:
    for path in sorted(package.rglob("*")):
        if path.stem in EMPTY_NAMES:
            yield str(path.relative_to(package))


def without_init(package: Path) -> Iterator[str]:
    for folder in sorted({path.parent for path in package.rglob("*.py")}):
        if not (folder / "__init__.py").exists():
            yield str(folder.relative_to(package))


def named_twice(package: Path) -> Iterator[str]:
    """Files of one name, which a search cannot tell apart; what stands for one family, task or paper may share."""
    paths = sorted(path.relative_to(package) for path in package.rglob("*.py") if path.name != "__init__.py")
    families = SHARED | {path.stem for path in paths if path.parts[0] in ("models", "tasks") and len(path.parts) == 3}
    for path in paths:
        parts = path.parts[0] in PARTS
        alike = [other for other in paths if other.stem == path.stem and other < path]
        others = [str(other) for other in alike if not (parts and other.parts[0] in PARTS)]
        if others and path.stem not in families:
            yield f"{path} is named as {', '.join(others)}"


def test_imports_go_one_way():
    assert not (found := list(wrong_way(PACKAGE))), "\n".join(found)


def test_no_part_imports_through_the_front_door():
    assert not (found := list(through_the_front(PACKAGE))), "\n".join(found)


def test_nothing_is_unpickled_or_executed():
    assert not (found := list(executing(PACKAGE))), "\n".join(found)


def test_no_module_is_named_after_nothing():
    assert not (found := list(named_after_nothing(PACKAGE))), "\n".join(found)


def test_no_two_files_have_one_name():
    assert not (found := list(named_twice(PACKAGE))), "\n".join(found)


def test_every_folder_of_code_is_a_package():
    assert not (found := list(without_init(PACKAGE))), "\n".join(found)


# The rules themselves, on one-line packages: a rule that finds nothing proves nothing until it has found something.

BROKEN = [
    (wrong_way, "attention/a.py", "from heedful.models import gpt"),
    (wrong_way, "models/a.py", "import heedful.training.loop"),
    (wrong_way, "attention/a.py", "from heedful.engines import runner"),
    (wrong_way, "engines/a.py", "from heedful.decoding import steps"),
    (wrong_way, "models/a.py", "from heedful import decoding"),
    (wrong_way, "safe/a.py", "from heedful.attention import Attention"),
    (wrong_way, "blocks/deep/a.py", "from ...tasks import pairs"),
    (wrong_way, "tasks/a.py", "def f():\n    from .. import cli"),
    (wrong_way, "looking/a.py", "from heedful.models.text.gpt import GPT"),
    (wrong_way, "tokenizers/a.py", "from ..training import loop"),
    (wrong_way, "data/a.py", "if True:\n    import heedful.tasks as t"),
    (through_the_front, "models/a.py", "import heedful"),
    (through_the_front, "decoding/a.py", "from heedful import load"),
    (executing, "training/a.py", "import pickle"),
    (executing, "training/a.py", "from torch import load"),
    (executing, "training/a.py", "import torch\ntorch.load('x')"),
    (executing, "models/part_words.py", "eval('1')"),
    (executing, "models/part_words.py", "run = exec"),
    (executing, "data/a.py", "import numpy\nnumpy.load('x', allow_pickle=True)"),
    (named_after_nothing, "models/utils.py", ""),
    (without_init, "models/a.py", ""),
]

SOUND = [
    (wrong_way, "blocks/a.py", "from heedful.attention import Attention"),
    (wrong_way, "attention/a.py", "from heedful.blocks import norms"),
    (wrong_way, "tasks/a.py", "from heedful.decoding import greedy"),
    (wrong_way, "looking/a.py", "from heedful.attention import Attention"),
    (wrong_way, "models/text/gpt.py", "from .spec import models"),
    (through_the_front, "cli/a.py", "import heedful"),
    (executing, "training/a.py", "model.eval()"),
    (executing, "cli/a.py", "from heedful.cli import eval\neval.evaluate()"),
    (executing, "checkpoints/a.py", "from safetensors.torch import load, save"),
]


def package_of(folder: Path, path: str, source: str) -> Path:
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_text(source, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("rule", "path", "source"), BROKEN)
def test_each_rule_finds_what_breaks_it(rule, path, source, tmp_path):
    assert len(list(rule(package_of(tmp_path, path, source)))) >= 1


@pytest.mark.parametrize(("rule", "path", "source"), SOUND)
def test_no_rule_objects_to_what_keeps_it(rule, path, source, tmp_path):
    assert list(rule(package_of(tmp_path, path, source))) == []


def test_the_rule_finds_two_files_of_one_name(tmp_path):
    for path in ("data/a.py", "models/text/gpt.py", "formats/gpt.py", "tasks/a.py"):
        package_of(tmp_path, path, "")
    assert list(named_twice(tmp_path)) == ["tasks/a.py is named as data/a.py"]
