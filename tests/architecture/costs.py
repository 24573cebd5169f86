"""What a new part of each kind costs: `python -m tests.architecture.costs` adds the examples of docs/adding.md.

From outside an example is written to a package of one's own; from inside it is written to a copy of heedful, and its
name to the registry's table there. What changed is then counted, and the part is asked for by its name.
"""

from __future__ import annotations

import difflib
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.examples import ROOT, Example, examples, install, run

INSIDE = {  # the folder of a kind, and its registry: the file of its table, and its name
    "mechanism": ("attention/mechanisms", "models/part_tables.py", "MECHANISMS"),
    "mask": ("attention/masks", "models/part_tables.py", "MASKS"),
    "family": ("models/sets", "models/__init__.py", "FAMILIES"),
    "task": ("tasks/sets", "tasks/__init__.py", "TASKS"),
    "reader": ("data/readers", "data/readers/__init__.py", "READERS"),
    "metric": ("metrics", "metrics/__init__.py", "METRICS"),
    "objective": ("objectives", "objectives/__init__.py", "OBJECTIVES"),
    "recipe": ("recipes", "training/spec/recipes.py", "RECIPES"),
    "format": ("formats/hf", "formats/layout_registry.py", "LAYOUTS"),
}
FOUND = "from heedful.{module} import {registry} as parts; assert parts.named({name!r}) is not None, list(parts)"


@dataclass(frozen=True)
class Cost:
    """How many files are new, and how many lines of others changed."""

    files: int
    edits: int

    def __str__(self) -> str:
        return f"{self.files} file{'s' * (self.files != 1)}, {self.edits} edit{'s' * (self.edits != 1)}"


def contents(folder: Path) -> dict[Path, str]:
    """The files of a package that people write."""
    paths = (path for path in folder.rglob("*") if path.suffix in (".py", ".yaml"))
    return {path.relative_to(folder): path.read_text(encoding="utf-8") for path in paths}


def cost(before: dict[Path, str], after: dict[Path, str]) -> Cost:
    """What must be written to come from one state of a package to another."""
    edits = 0
    for path, text in before.items():
        one, two = (text.splitlines(), after[path].splitlines())
        changes = difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes() if one != two else []
        edits += sum(max(b - a, d - c) for kind, a, b, c, d in changes if kind != "equal")
    return Cost(len(after.keys() - before.keys()), edits)


def named_in_table(text: str, registry: str, name: str, place: str) -> str:
    """A module with one more name in the table of one of its registries."""
    table = re.compile(rf"^{registry}\b.*?= \w+\(.*?{{", re.MULTILINE | re.DOTALL)
    found = table.search(text)
    assert found is not None, f"{registry} has no table"
    line, rest = f'"{name}": "{place}"', text[found.end() :]
    if rest.startswith("}"):
        return text[: found.end()] + line + rest
    behind, newline, names = rest.partition("\n")
    return f"{text[: found.end()]}{behind}{newline}        {line},\n{names}"


def module_of(path: str) -> str:
    """The module that a file is, within its package."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def asked(example: Example, folder: Path, *paths: Path) -> None:
    """Asks for the part by its name, in a process of its own."""
    _, table, registry = INSIDE[example.kind]
    program = FOUND.format(module=module_of(table), registry=registry, name=example.name)
    done = run(["-c", program], folder, *paths)
    assert done.returncode == 0, done.stderr


def from_outside(example: Example, folder: Path) -> Cost:
    """The cost of an example in a package of one's own, beside heedful as it is."""
    before = contents(ROOT / "heedful")
    install(folder, [example])
    asked(example, folder, ROOT, folder)
    mine = contents(folder)
    return Cost(len(mine), cost(before, contents(ROOT / "heedful")).edits)


def from_inside(example: Example, folder: Path) -> Cost:
    """The cost of an example in a copy of heedful."""
    home = folder / "heedful"
    shutil.copytree(ROOT / "heedful", home, ignore=shutil.ignore_patterns("__pycache__"))
    before, (room, table, registry) = contents(home), INSIDE[example.kind]
    file = example.file if example.kind != "recipe" else f"{example.name}.yaml"
    (home / room / file).write_text(example.text, encoding="utf-8")
    if example.kind != "recipe":
        place = f"heedful.{module_of(f'{room}/{file}')}:{example.place.partition(':')[2]}"
        text = (home / table).read_text(encoding="utf-8")
        (home / table).write_text(named_in_table(text, registry, example.name, place), encoding="utf-8")
    asked(example, folder, folder)
    return cost(before, contents(home))


def costs(example: Example) -> tuple[Cost, Cost]:
    """What an example costs from outside and from inside."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        return from_outside(example, Path(one)), from_inside(example, Path(two))


def main() -> None:
    """Prints a line for each kind."""
    sys.stdout.write(f"{'a new':12s}{'from outside':20s}{'from inside'}\n")
    for example in examples():
        outside, inside = costs(example)
        sys.stdout.write(f"{example.kind:12s}{outside!s:20s}{inside!s}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
