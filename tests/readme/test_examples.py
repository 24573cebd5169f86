"""The notebooks under examples/ run from top to bottom, and each shows what a notebook alone can show."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
STEPS = {"250", "300", "800"}  # of training, of which a test takes a few


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def shortened(source: str) -> str:
    for steps in STEPS:
        source = source.replace(f"training.steps={steps}", 'training.steps=4", "data.samples=64", "data.held_out=16')
    return source


def run(source: str, names: dict[str, Any]) -> Any:
    """Runs a cell as a notebook does: its last line, where that is an expression, is what it shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_something_in_every_cell(path: Path) -> None:
    names: dict[str, Any] = {}
    sources = ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]
    shown = [run(shortened(source), names)._repr_html_() for source in sources]
    assert len(shown) >= 4 and all("<table" in one or "<iframe" in one for one in shown)
    assert sum("srcdoc=" in one and "class=&quot;viewer&quot;" in one for one in shown) >= 1
    assert "training.steps=4" not in "".join(sources) and any("training.steps=" in one for one in sources)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_what_it_showed(path: Path) -> None:
    assert [cell for cell in cells(path) if cell["cell_type"] == "code" and cell["outputs"]] == []


def test_there_is_a_notebook_for_each_kind_of_data() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["images", "series", "sets", "text"]
