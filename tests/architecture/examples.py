"""The examples of docs/adding.md: the file of each kind of part, its entry point, and the commands that use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding.md"
PACKAGE = "my_parts"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r'\[project\.entry-points\."(?P<group>[\w.]+)"\]\n(?P<name>[\w-]+) = "(?P<place>[\w.:]+)"')


@dataclass(frozen=True)
class Example:
    """One kind of part, as the page adds it."""

    kind: str
    file: str  # its name, within a package
    text: str
    group: str  # of entry points
    name: str
    place: str
    commands: tuple[str, ...]

    @property
    def line(self) -> str:
        """Its line in a file of entry points."""
        return f"[{self.group}]\n{self.name} = {self.place}\n"


def sections() -> dict[str, list[tuple[str, str]]]:
    """The blocks of code under each heading."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {heading: BLOCK.findall(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def examples() -> list[Example]:
    """The example of each kind, in the order of the page."""
    made = []
    for heading, blocks in sections().items():
        if not any(language == "toml" for language, _ in blocks):
            continue
        (_, text), (_, toml), (_, commands) = blocks
        first = text.splitlines()[0]
        entry = ENTRY.match(toml)
        assert entry is not None and first.startswith(f"# {PACKAGE}/"), heading
        kind, file = heading.split()[-1], first.removeprefix(f"# {PACKAGE}/")
        made.append(Example(kind, file, text, **entry.groupdict(), commands=tuple(commands.splitlines())))
    return made


def programs() -> dict[str, str]:
    """The programs of the page, by the names that they give themselves."""
    return {text.splitlines()[0].removeprefix("# "): text for _, text in sections()["In Python"]}


def install(folder: Path, some: Sequence[Example]) -> None:
    """Writes examples as an installed package would lie there: their files, and the metadata that names them."""
    for example in some:
        path = folder / PACKAGE / example.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example.text, encoding="utf-8")
    metadata = folder / f"{PACKAGE}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("\n".join(one.line for one in some), encoding="utf-8")


def run(words: Sequence[str], folder: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder, where packages are found on these paths."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
