"""All that is printed goes through heedful/terminal.py, which cleans it where a person reads it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "heedful"
PLACE = "terminal.py"
PRINTING = {"print", "pprint", "typer.echo", "typer.secho", "rich.print", "Console", "sys.stdout", "sys.stderr"}
MAY = {  # asks whom it speaks to, and says nothing; ends what is printed
    "cli/answers_told.py": {"sys.stdout", "sys.stderr"},
    "training/distributed/ranks.py": {"sys.stdout", "sys.stderr"},
}


def printing(package: Path) -> Iterator[str]:
    """Every place that could print by itself."""
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name == PLACE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                word = f"{node.value.id}.{node.attr}"
            elif isinstance(node, ast.Name):
                word = node.id
            else:
                continue
            if word in PRINTING - MAY.get(name, set()):
                yield f"{name}:{node.lineno} {word}"


def test_nothing_else_prints() -> None:
    assert not (found := list(printing(PACKAGE))), "\n".join(found)


@pytest.mark.parametrize(
    "source",
    ["print(1)", "import typer\ntyper.echo(1)", "import sys\nsys.stderr.write('')", "x = Console(stderr=True)"],
)
def test_the_rule_finds_what_prints(source: str, tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(source, encoding="utf-8")
    assert len(list(printing(tmp_path))) == 1
