"""The pages of the documentation, gathered in a folder: those that are written, and those that code and recipes make.

`make docs` builds the site: `python -m tools.docs_pages build/docs` writes the pages, and mkdocs.yml beside them.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tools.docs_reference import reference
from tools.docs_results import results

ROOT = Path(__file__).parents[1]
CHAPTERS = ROOT / "tools" / "chapters.py"
LECTURES = "lectures"
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")  # at the root of the repository
RECORDS = {
    "heedful/bench/records/cpu.json": "results/bench_cpu.json",
    "heedful/bench/records/gpu.json": "results/bench_gpu.json",
}


def assemble(folder: Path) -> None:
    """Writes all pages but the lectures into a new folder."""
    shutil.copytree(ROOT / "docs", folder)
    for name in PROJECT:
        write(folder / "project" / name, (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](../"))
    for source, target in RECORDS.items():
        shutil.copy(ROOT / source, folder / target)
    for name, text in {**reference(), **results()}.items():
        write(folder / name, text)


def write(path: Path, text: str) -> None:
    """Writes a page, and the folders that it is in; one that is written by hand is never covered by another."""
    if path.exists():
        sys.exit(f"{path} is there already; a page cannot be written by hand and made too")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def lectures(folder: Path, chapters: list[str]) -> None:
    """Executes the chapters, where there are any, and writes their pages, figures and notebooks."""
    if CHAPTERS.exists():
        words = [sys.executable, str(CHAPTERS), "--out", str(folder / LECTURES), *chapters]
        subprocess.run(words, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def settings(folder: Path) -> dict[str, Any]:
    """The settings of mkdocs: those of mkdocs.yml, for this folder, with the lectures that are there."""
    told: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    found = sorted(path.name for path in (folder / LECTURES).glob("[0-9]*.md"))
    for part in told["nav"]:
        if "Lectures" in part:
            part["Lectures"] += [f"{LECTURES}/{name}" for name in found]
    for plugin in told["plugins"]:
        if isinstance(plugin, dict) and "mkdocstrings" in plugin:
            plugin["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT)]
    return told | {"docs_dir": str(folder.resolve()), "site_dir": str(folder.resolve().parent / "site")}


def main() -> None:
    """Writes the pages and the settings, from nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without-lectures", action="store_true", help="leave the chapters out, which take minutes")
    parser.add_argument("--chapters", nargs="*", default=[], help="words for tools/chapters.py, such as --small")
    told = parser.parse_args()
    shutil.rmtree(told.folder, ignore_errors=True)
    assemble(told.folder)
    if not told.without_lectures:
        lectures(told.folder, told.chapters)
    made = yaml.safe_dump(settings(told.folder), sort_keys=False)
    (told.folder.parent / "mkdocs.yml").write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
