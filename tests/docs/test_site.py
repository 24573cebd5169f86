"""The documentation: its pages are gathered, every link and entry leads somewhere, and none asks another machine."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from heedful.bench import recorded
from heedful.training.spec import keys, recipes
from tests.architecture.test_documents import dead_links
from tools import docs_check, docs_pages

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r"!\[[^\]]*\]\((https?:[^)]*)\)|<(?:img|script|iframe|link|video)[^>]*(?:src|href)=\"(https?:[^\"]*)\""
)
PARTS = ["Start", "Guides", "Lectures", "Reference", "Results", "Design"]
GUIDES = (
    "translate classify tag answer summarise chat language_models images self_supervision fine_tune look_inside "
    "kinds_of_attention python many_gpus resume export"
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, those that code makes among them."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    docs_pages.assemble(folder)
    return folder


@pytest.fixture(scope="module")
def settings(pages: Path) -> dict[str, Any]:
    return docs_pages.settings(pages)


def entries(nav: Any) -> Iterator[str]:
    """The pages that a navigation names, however deep."""
    for one in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from [one] if isinstance(one, str) else entries(one)


# ---------------------------------------------------------------------- the pages


def test_every_link_of_every_page_leads_somewhere(pages: Path) -> None:
    dead = {path.relative_to(pages).as_posix(): dead_links(path) for path in pages.rglob("*.md")}
    assert {page: found for page, found in dead.items() if found} == {}


def test_every_page_stands_in_the_navigation_once(pages: Path, settings: dict[str, Any]) -> None:
    named = list(entries(settings["nav"]))
    assert [next(iter(part)) for part in settings["nav"]] == PARTS
    assert sorted(named) == sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.md"))


def test_every_guide_is_there(pages: Path) -> None:
    index = (pages / "guides/index.md").read_text(encoding="utf-8")
    for name in GUIDES.split():
        assert (pages / f"guides/{name}.md").exists() and f"({name}.md)" in index


def test_no_page_fetches_anything_from_elsewhere(pages: Path, settings: dict[str, Any]) -> None:
    for path in (*pages.rglob("*.md"), ROOT / "README.md"):
        assert FETCHED.findall(path.read_text(encoding="utf-8")) == [], path
    assert settings["theme"]["font"] is False and not {"repo_url", "extra_javascript"} & settings.keys()


def test_every_key_stands_in_the_reference(pages: Path) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (pages / "reference").glob("keys*.md"))
    for group in keys.keys_of_task("translation"):
        for key in group.keys:
            assert f"| `{key.key}` |" in text and key.meaning.replace("|", "\\|") in text


def test_every_recipe_and_every_measured_kind_stand_in_the_results(pages: Path) -> None:
    results = (pages / "results/index.md").read_text(encoding="utf-8")
    for name in recipes.names():
        assert f"`heedful train {name}`" in results
        for data in recipes.sets(name):
            assert f"`heedful train {name} data={data}`" in results
    lengths = (pages / "results/lengths.md").read_text(encoding="utf-8")
    assert all(f"| `{kind}` |" in lengths for case in recorded.every() for kind in case["kinds"] if kind != "softmax")
    assert json.loads((pages / "results/bench_cpu.json").read_text(encoding="utf-8"))["cases"]


def test_lectures_join_the_navigation_when_their_pages_are_there(pages: Path) -> None:
    assert "lectures/01_first.md" not in entries(docs_pages.settings(pages)["nav"])
    (pages / "lectures/01_first.md").touch()
    assert "lectures/01_first.md" in entries(docs_pages.settings(pages)["nav"])
    (pages / "lectures/01_first.md").unlink()


# ---------------------------------------------------------------------- the built site


def test_what_is_wrong_with_a_built_site_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="here">B</h1>', encoding="utf-8")
    (tmp_path / "look.css").write_text("@import 'https://fonts.example/a.css'; b { background: url(own.png) }", "utf-8")
    links = '<a href="b.html#here"><a href="b.html#gone"><a href="c.html"><a href="https://example.org/">'
    loads = '<script src="https://cdn.example/x.js"></script><link rel="canonical" href="https://example.org/">'
    (tmp_path / "a.html").write_text(f"{links}{loads}<img src='data:image/png;base64,AA'>", encoding="utf-8")
    assert list(docs_check.faults(tmp_path)) == [
        "a.html asks another machine for https://cdn.example/x.js",
        "a.html links to b.html#gone, which is not there",
        "a.html links to c.html, which is not there",
        "look.css asks another machine for https://fonts.example/a.css",
    ]


def test_a_site_without_pages_is_wrong(tmp_path: Path) -> None:
    assert list(docs_check.faults(tmp_path)) == [f"{tmp_path} holds no pages"]


# ---------------------------------------------------------------------- what a project has


def test_the_version_is_the_same_wherever_it_stands() -> None:
    from heedful import __version__

    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__
    assert f"## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
