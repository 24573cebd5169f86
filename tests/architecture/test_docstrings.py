"""Every public module, class, function and method says what it is; an override may leave that to what it overrides."""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def undocumented(root: Path, path: Path) -> Iterator[str]:
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    if silent(tree):
        yield module
    for node in public(tree):
        if silent(node):
            yield f"{module}.{node.name}"
        for method in public(node) if isinstance(node, ast.ClassDef) else ():
            if silent(method) and not says_base(module, node.name, method.name):
                yield f"{module}.{node.name}.{method.name}"


def silent(node: Documented) -> bool:
    return ast.get_docstring(node) is None


def public(parent: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """What a module or class offers by name; a setter and an overload are the getter and the function over again."""
    for node in parent.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            again = any(ast.unparse(mark).endswith(("overload", ".setter")) for mark in node.decorator_list)
            if not again and not node.name.startswith("_"):
                yield node


def says_base(module: str, name: str, method: str) -> bool:
    """Whether a class inherits words for a method: nn.Module has some for every forward."""
    bases = getattr(importlib.import_module(module), name).__mro__[1:]
    return any(inspect.getdoc(vars(base).get(method)) for base in bases if method in vars(base))


def test_everything_public_says_what_it_is():
    missing = [name for path in sorted((ROOT / "heedful").rglob("*.py")) for name in undocumented(ROOT, path)]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("x = 1", ["sample"]),
        ('"""A."""\ndef f(): ...', ["sample.f"]),
        ('"""A."""\nclass C: ...', ["sample.C"]),
        ('"""A."""\nclass C:\n    """C."""\n    def m(self): ...', ["sample.C.m"]),
        ('"""A."""\ndef _f(): ...\nclass _C: ...', []),
        ('"""A."""\nclass C:\n    """C."""\n    def __len__(self): ...', []),
        ('"""A."""\nfrom torch import nn\nclass C(nn.Module):\n    """C."""\n    def forward(self): ...', []),
    ],
)
def test_the_rule_finds_what_says_nothing(source, missing, tmp_path, monkeypatch):
    (tmp_path / "sample.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sample", raising=False)
    assert list(undocumented(tmp_path, tmp_path / "sample.py")) == missing
