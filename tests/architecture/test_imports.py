"""Imports go one way, nothing is named after nothing or asked for its class, and nothing in a file is executed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "heedful"

# Every folder of code, and the files beside them. Each may import itself and the rows above it, and none of its row.
ORDER = (
    ("errors", "terminal", "tokenizers/sentencepiece"),
    ("registry", "interrupts", "safe", "data/public"),
    ("attention", "tokenizers"),
    ("attention/mechanisms", "attention/masks", "attention/biases", "attention/heads", "blocks"),
    ("tokenizers/training", "data"),
    ("attention/grid", "blocks/stacks", "blocks/pairs", "inputs", "outputs"),
    ("data/formats", "data/transforms", "looking"),
    ("typed_result",),
    ("data/images", "models", "results"),
    ("data/toys", "models/text", "models/vision", "models/series", "models/sets", "models/multimodal", "engines"),
    ("data/readers", "decoding", "formats", "metrics"),
    ("formats/hf", "pipelines"),
    ("formats/timm", "objectives", "views"),
    ("objectives/head_losses",),
    ("tasks",),
    ("tasks/text", "tasks/vision", "tasks/series", "tasks/sets", "training/spec"),
    ("training/distributed", "training/adapt"),
    ("training",),
    ("bench", "testing", "training/loggers"),
    ("cli",),
)
RANK = {name: rank for rank, row in enumerate(ORDER) for name in row}
FRONT = {"__init__", "__main__"}  # what users import and start
WITHOUT_MODELS = {"looking", "tokenizers", "data"}  # these take tensors, strings and files, and know no model
MODELS = {
    "models",
    "engines",
    "decoding",
    "formats",
    "metrics",
    "objectives",
    "pipelines",
    "views",
    "tasks",
    "training",
}

FAMILY, TASK = {"models", "formats"}, {"tasks", "objectives", "metrics", "views"}  # whose parts may share its name
RECORDS = {"Family", "Task"}  # by which a family or a task is declared
EMPTY_NAMES = {"utils", "util", "common", "core", "helpers", "helper", "misc"}
PICKLING = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
EXECUTING = {"eval", "exec", "torch.load", "torch.save", "yaml.load", "yaml.full_load", "yaml.unsafe_load"}


def folder_of(name: str) -> str:
    """The folder of a module, or the module itself where it lies beside the folders."""
    parts = name.split(".")[1:]
    while parts and "/".join(parts) not in RANK:
        parts.pop()
    return "/".join(parts)


def modules(package: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package), ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name a module imports, in full, wherever in it the import stands; what a package offers lazily left out."""
    here = ("heedful", *path.parts)
    lazy = {
        id(node) for block in tree.body if path.name == "__init__.py" and is_lazy(block) for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in lazy:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(here[: len(here) - node.level]) if node.level else ""
            origin = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                yield node.lineno, f"{origin}.{alias.name}"


def is_lazy(block: ast.stmt) -> bool:
    """Whether a block is what `registry.lazily` reads."""
    return isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"


def wrong_way(package: Path) -> Iterator[str]:
    """Imports of what does not stand above: with every folder ranked, there is no cycle between folders."""
    for path, tree in modules(package):
        here = (path.parent if len(path.parts) > 1 else path.with_suffix("")).as_posix()
        if here in FRONT:
            continue
        if here not in RANK:
            yield f"{here} has no place in ORDER"
            continue
        for line, name in imported(path, tree):
            there = folder_of(name) if name.startswith("heedful.") else here
            upward = there and there != here and RANK[there] >= RANK[here]
            knows = here.split("/")[0] in WITHOUT_MODELS and there.split("/")[0] in MODELS
            if upward or knows:
                yield f"{path}:{line} {here} imports {name}"


def through_the_front(package: Path) -> Iterator[str]:
    """Imports of what heedful/__init__.py offers from inside it: they hide which way they go."""
    inside = {path.stem for path in package.iterdir()}
    for path, tree in modules(package):
        if path.stem in FRONT or path.parts[0] in ("cli", "bench"):
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
    """Files of one name, which a search cannot tell apart; one family's files and one task's parts may share theirs."""
    paths = sorted(path.relative_to(package) for path in package.rglob("*.py") if path.name != "__init__.py")
    for path in paths:
        alike = [other for other in paths if other.stem == path.stem and other < path]
        tops = {one.parts[0] for one in (*alike, path)}
        if alike and not (tops <= FAMILY or tops <= TASK):
            yield f"{path} is named as {', '.join(map(str, alike))}"


def families_and_tasks(package: Path) -> dict[str, Path]:
    """The classes of families and tasks that their records name, and where each of them stands."""
    found = {}
    for path, tree in modules(package):
        own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in tree.body:
            if isinstance(node, ast.Assign) and made_by(node.value) in RECORDS:
                found |= {name: path for _, name in used(ast.Module([ast.Expr(node.value)], [])) if name in own}
    return found


def made_by(value: ast.expr) -> str:
    """The name of what is called, where something is."""
    return value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""


def asking_the_kind(package: Path) -> Iterator[str]:
    """`isinstance` on the class of one family or one task outside its own file: what it can do is asked instead."""
    known = families_and_tasks(package)
    for path, tree in modules(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and made_by(node) in ("isinstance", "issubclass"):
                names = {
                    name for _, written in used(ast.Module([ast.Expr(node.args[1])], [])) for name in written.split(".")
                }
                for name in sorted(names & known.keys()):
                    if known[name] != path:
                        yield f"{path}:{node.lineno} asks for a {name}, which is {known[name]}'s"


def asking_for_a_name(package: Path) -> Iterator[str]:
    for path, tree in modules(package):
        for line, name in used(tree):
            if name == "hasattr":
                yield f"{path}:{line} asks with hasattr"


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


def test_no_part_asks_for_the_class_of_one_family_or_task():
    assert not (found := list(asking_the_kind(PACKAGE))), "\n".join(found)


def test_nothing_is_asked_for_by_the_name_of_an_attribute():
    assert not (found := list(asking_for_a_name(PACKAGE))), "\n".join(found)


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
    (wrong_way, "data/a.py", "from heedful.data.readers import reader"),
    (wrong_way, "metrics/a.py", "from heedful.objectives.objective import Objective"),
    (wrong_way, "blocks/pairs/a.py", "from heedful.blocks.stacks import star"),
    (wrong_way, "tasks/a.py", "if TYPE_CHECKING:\n    from heedful.tasks.text import chat"),
    (wrong_way, "results.py", "from heedful.models import build"),
    (wrong_way, "elsewhere/a.py", ""),
    (asking_for_a_name, "looking/a.py", "hasattr(1, 'x')"),
    (asking_for_a_name, "looking/a.py", "filter(hasattr, [])"),
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
    (wrong_way, "blocks/a.py", "from heedful.attention import norms"),
    (wrong_way, "tasks/a.py", "from heedful.decoding import greedy"),
    (wrong_way, "looking/a.py", "from heedful.attention import Attention"),
    (wrong_way, "models/text/gpt.py", "from .spec import models"),
    (wrong_way, "tasks/__init__.py", "if TYPE_CHECKING:\n    from heedful.tasks.text import chat"),
    (wrong_way, "data/readers/a.py", "from heedful.data import splits"),
    (asking_for_a_name, "looking/a.py", "getattr(1, 'x', None)"),
    (through_the_front, "cli/a.py", "import heedful"),
    (executing, "training/a.py", "model.eval()"),
    (executing, "cli/a.py", "from heedful.cli import eval\neval.evaluate()"),
    (executing, "checkpoints/a.py", "from safetensors.torch import load, save"),
]


def package_of(folder: Path, path: str, source: str) -> Path:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
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


def test_the_rule_finds_who_asks_for_a_family(tmp_path):
    package_of(tmp_path, "models/text/gpt.py", "class GPT: ...\nisinstance(1, GPT)\nFAMILY = Family(GPT)")
    package_of(tmp_path, "tasks/a.py", "isinstance(1, int | gpt.GPT)")
    assert list(asking_the_kind(tmp_path)) == ["tasks/a.py:1 asks for a GPT, which is models/text/gpt.py's"]
