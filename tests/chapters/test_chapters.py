"""The lectures: each chapter runs at its smallest setting, and becomes a page, pictures for it and a notebook."""

import ast
import importlib.util
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PICTURE = re.compile(r"^!\[([^\]]*)\]\((\S+\.svg)#only-(light|dark)\)$", re.MULTILINE)
SCRIPT = """
# %% [markdown]
# # A title
# and a **word**

# %% tags=["parameters"]
small = False

# %%
import matplotlib.pyplot as plt
print("small" if small else "large")
figure, _ = plt.subplots(facecolor="#fefefe")
figure.set_label("A frame.")
"""


def load_tool():
    spec = importlib.util.spec_from_file_location("chapters_tool", ROOT / "tools/chapters.py")
    tool = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tool  # where dataclasses look for what they are made of
    spec.loader.exec_module(tool)
    return tool


chapters = load_tool()
SCRIPTS = chapters.scripts()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_chapter_runs_and_becomes_a_page_and_a_notebook(script, tmp_path):
    page = chapters.execute(script, tmp_path, small=True).read_text("utf-8")
    assert re.match(r"# \w.*\n", page)
    pictures = PICTURE.findall(page)
    assert len(pictures) == page.count("\n![") >= 2  # each has a text for those who do not see it, and two papers
    assert all(len(alt) > 40 and (tmp_path / file).stat().st_size > 1000 for alt, file, _ in pictures)
    made = json.loads((tmp_path / f"{script.stem}.ipynb").read_text("utf-8"))
    code = ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]
    assert all(f"```python\n{source}\n```" in page for source in code)
    assert any("\nassert " in source or "    assert " in source for source in code)  # what it claims is checked


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_chapter_has_one_setting_that_is_small(script):
    tagged = [cell for cell in chapters.cells_of(script) if cell.parameters]
    assert [cell.text.count("\nsmall = False") for cell in tagged] == [1]


def test_chapters_are_numbered_one_after_the_other():
    assert [int(script.stem[:2]) for script in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))


def write_script(folder: Path, text: str) -> Path:
    script = folder / "01_made.py"
    script.write_text(text, "utf-8")
    return script


def test_cells_become_markdown_code_output_and_pictures(tmp_path):
    page = chapters.execute(write_script(tmp_path, SCRIPT), tmp_path / "out").read_text("utf-8")
    assert page.startswith("# A title\nand a **word**\n\n```python\nsmall = False\n```\n\n```python\nimport")
    assert "```text\nlarge\n```\n\n![A frame.](01_made-1.svg#only-light)\n![A frame.](01_made-1-dark.svg" in page
    light, dark = ((tmp_path / "out" / f"01_made-1{end}.svg").read_text("utf-8") for end in ("", "-dark"))
    assert "fill: #fefefe" in light and "fill: #fefefe" not in dark
    assert ElementTree.fromstring(light).tag.endswith("svg")


def test_the_small_setting_is_set_behind_the_cell_of_parameters(tmp_path):
    page = chapters.execute(write_script(tmp_path, SCRIPT), tmp_path, small=True).read_text("utf-8")
    assert "```text\nsmall\n```" in page


def test_a_notebook_is_what_jupyter_reads(tmp_path):
    chapters.execute(write_script(tmp_path, SCRIPT), tmp_path)
    made = json.loads((tmp_path / "01_made.ipynb").read_text("utf-8"))
    first, second, third = made["cells"]
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert first == {"cell_type": "markdown", "id": "cell-0", "metadata": {}, "source": first["source"]}
    assert second["metadata"] == {"tags": ["parameters"]} and second["outputs"] == []
    assert [one["output_type"] for one in third["outputs"]] == ["stream", "display_data"]
    assert ast.parse("".join(third["source"]))


def test_an_error_names_the_line_of_the_script(tmp_path):
    script = write_script(tmp_path, "# %% [markdown]\n# # A title\n\n# %%\n\nx = 1\nassert x == 2\n")
    with pytest.raises(AssertionError) as caught:
        chapters.execute(script, tmp_path)
    assert caught.traceback[-1].path == script and caught.traceback[-1].lineno == 6  # counted from 0
    assert not (tmp_path / "01_made.md").exists()


def test_a_chapter_that_is_not_there_is_refused_by_the_numbers_that_are():
    with pytest.raises(SystemExit, match="there is no chapter 99; give some of 01, 02, "):
        chapters.scripts(["99"])
