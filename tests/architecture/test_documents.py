"""Documentation: its links lead somewhere, and the files that it names are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")})  # tests/docs follows the links of those in docs
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
FILE = re.compile(r"`([\w/.-]+\.(?:py|cpp|yaml))`")
WRITTEN = {"run.yaml"}  # by a run


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> list[str]:
    """Links to files that are not there, or to headings that their page does not have."""
    dead = []
    for to, at in LINK.findall(page.read_text(encoding="utf-8")):
        there = page.parent / to if to else page
        if not there.exists() or (at and at not in anchors(there)):
            dead.append(f"{to}#{at}")
    return dead


def lost_files(page: Path, files: set[str]) -> list[str]:
    """Files of the package that a page names, in full or by the end of their path, and that are not there."""
    named = set(FILE.findall(page.read_text(encoding="utf-8"))) - WRITTEN
    return sorted(name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files))


@pytest.fixture(scope="module")
def files() -> set[str]:
    folders = ("heedful", "tests", "tools")
    return {path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("*.*")}


def page_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=page_of)
def test_every_link_of_a_page_leads_somewhere(page):
    assert dead_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=page_of)
def test_every_file_that_a_page_names_is_there(page, files):
    assert lost_files(page, files) == []


def test_every_room_of_decisions_is_in_their_index():
    index = ROOT / "docs/decisions/README.md"
    rooms = {path.name for path in index.parent.glob("*.md")} - {index.name}
    assert rooms == {to for to, _ in LINK.findall(index.read_text(encoding="utf-8"))} - {"../design.md"}


def test_no_decision_stands_twice():
    pages = (ROOT / "docs/decisions").glob("*.md")
    headings = [line for page in pages for line in page.read_text(encoding="utf-8").split("\n") if line[:3] == "## "]
    assert len(headings) == len(set(headings))


def test_the_design_is_read_in_one_sitting():
    assert len((ROOT / "docs/design.md").read_text(encoding="utf-8").splitlines()) <= 250


def test_what_a_page_lost_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A law\n[a](gone.md#law) [b](#a-law) [c](page.md#seam) `models/gone.py` `gpt.py`", "utf-8")
    assert dead_links(page) == ["gone.md#law", "page.md#seam"]
    assert lost_files(page, {"heedful/models/text/gpt.py"}) == ["models/gone.py"]
