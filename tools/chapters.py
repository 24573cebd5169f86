"""Runs the chapters, and writes each as a page (Markdown), its pictures (SVG) and a notebook.

    python tools/chapters.py --out site/chapters [--small] [01 06 ...]

A chapter is a script in jupytext's percent format: `# %% [markdown]` cells, whose lines are comments, and `# %%`
cells of code. Its first heading is its title. Every figure that a cell leaves open is a picture below it, and the
figure's label is what readers hear who cannot see it: `figure.set_label("...")`. The cell that is tagged "parameters"
sets `small`, which --small sets to True behind it.
"""

import argparse
import contextlib
import io
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
CHAPTERS = ROOT / "chapters"
MARK = re.compile(r"^# %%(?P<kind> \[markdown\])?(?P<rest>.*)$")
DARK = {  # what figures are drawn in, where the page is dark
    "#1c2430": "#e4e8ee", "#5d6878": "#a9b4c2", "#c9d0d8": "#566273", "fill: #fefefe": "fill: none"
}  # fmt: skip


@dataclass
class Picture:
    """A figure as SVG, and what it shows in words."""

    svg: str
    alt: str


@dataclass
class Cell:
    """A cell of a chapter, where it begins in the script, and what running it has given."""

    code: bool
    lines: list[str]
    first: int
    parameters: bool = False
    printed: str = ""
    pictures: list[Picture] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What it says: code as it is, Markdown without the signs of a comment."""
        lines = self.lines if self.code else [line.removeprefix("#").removeprefix(" ") for line in self.lines]
        return "\n".join(lines).strip("\n")


def cells_of(script: Path) -> list[Cell]:
    """The cells of a script in percent format; what stands before the first of them is no part of the page."""
    cells: list[Cell] = []
    for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1):
        if mark := MARK.match(line):
            cells.append(Cell(mark["kind"] is None, [], number, '"parameters"' in mark["rest"]))
        elif cells:
            cells[-1].lines.append(line)
    return [cell for cell in cells if cell.text]


def run_cells(cells: list[Cell], script: Path, small: bool) -> None:
    """Runs the code of a chapter in one namespace, and keeps what each cell prints and draws."""
    import matplotlib

    matplotlib.use("agg")
    module = ModuleType(script.stem)
    with matplotlib.rc_context():
        for cell in cells:
            if cell.code:
                heard = io.StringIO()
                code = "\n" * cell.first + "\n".join(cell.lines)  # so that an error names the line of the script
                with contextlib.redirect_stdout(heard):
                    exec(compile(code, str(script), "exec"), vars(module))
                cell.printed, cell.pictures = heard.getvalue().rstrip("\n"), open_figures()
            if cell.parameters:
                vars(module)["small"] = small


def open_figures() -> list[Picture]:
    """The figures that are open, which are closed now."""
    from matplotlib import pyplot

    made = []
    for number in pyplot.get_fignums():
        figure, drawn = pyplot.figure(number), io.StringIO()
        figure.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
        made.append(Picture(drawn.getvalue(), figure.get_label()))
    pyplot.close("all")
    return made


def page(cells: list[Cell], name: str, out: Path) -> str:
    """The chapter as Markdown; its pictures are written beside it, for light pages and for dark ones."""
    parts, count = list[str](), 0
    for cell in cells:
        if not cell.code:
            parts.append(cell.text)
            continue
        parts.append(f"```python\n{cell.text}\n```")
        if cell.printed:
            parts.append(f"```text\n{cell.printed}\n```")
        for picture in cell.pictures:
            count += 1
            files = f"{name}-{count}.svg", f"{name}-{count}-dark.svg"
            (out / files[0]).write_text(picture.svg, encoding="utf-8")
            (out / files[1]).write_text(darkened(picture.svg), encoding="utf-8")
            shown = zip(files, ("light", "dark"), strict=True)
            parts.append("\n".join(f"![{picture.alt}]({file}#only-{page})" for file, page in shown))
    parts.append(f"Run it yourself: [{name}.ipynb]({name}.ipynb), or `python chapters/{name}.py` from a checkout.")
    return "\n\n".join(parts) + "\n"


def darkened(svg: str) -> str:
    """The same picture for a dark page: its ink light, and its paper the page's own."""
    for light, dark in DARK.items():
        svg = svg.replace(light, dark)
    return svg


def notebook(cells: list[Cell]) -> dict[str, Any]:
    """The chapter as a notebook (nbformat 4.5), with what it printed and drew."""
    made: list[dict[str, Any]] = []
    for number, cell in enumerate(cells):
        one: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
        if cell.code:
            tags = {"tags": ["parameters"]} if cell.parameters else {}
            one |= {"cell_type": "code", "execution_count": None, "metadata": tags, "outputs": outputs(cell)}
        made.append(one if cell.code else one | {"cell_type": "markdown"})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def outputs(cell: Cell) -> list[dict[str, Any]]:
    """What a cell printed and drew, as notebooks keep it."""
    made: list[dict[str, Any]] = []
    if cell.printed:
        lines = (cell.printed + "\n").splitlines(keepends=True)
        made.append({"output_type": "stream", "name": "stdout", "text": lines})
    for picture in cell.pictures:
        data = {"image/svg+xml": picture.svg.splitlines(keepends=True), "text/plain": [picture.alt]}
        made.append({"output_type": "display_data", "data": data, "metadata": {}})
    return made


def execute(script: Path, out: Path, small: bool = False) -> Path:
    """Runs a chapter in this process, and writes its page, pictures and notebook; the page's path."""
    cells, name = cells_of(script), script.stem
    run_cells(cells, script, small)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.ipynb").write_text(json.dumps(notebook(cells), indent=1, ensure_ascii=False) + "\n", "utf-8")
    (out / f"{name}.md").write_text(page(cells, name, out), encoding="utf-8")
    return out / f"{name}.md"


def scripts(numbers: list[str] | None = None) -> list[Path]:
    """The chapters of these numbers, or all of them, in order."""
    found = sorted(CHAPTERS.glob("[0-9][0-9]_*.py"))
    known = {script.stem[:2] for script in found}
    if unknown := [number for number in numbers or () if number not in known]:
        sys.exit(f"there is no chapter {unknown[0]}; give some of {', '.join(sorted(known))}")
    return [script for script in found if not numbers or script.stem[:2] in numbers]


def main() -> None:
    """The command line."""
    asked = argparse.ArgumentParser(description="Run the chapters, and write them as pages and notebooks.")
    asked.add_argument("numbers", nargs="*", metavar="NN", help="chapters to run; all where none is given")
    asked.add_argument("--out", type=Path, required=True, help="the folder to write to")
    asked.add_argument("--small", action="store_true", help="the quick setting: fewer steps, shorter sequences")
    given = asked.parse_args()
    for script in scripts(given.numbers):
        print(execute(script, given.out, given.small), flush=True)


if __name__ == "__main__":
    main()
