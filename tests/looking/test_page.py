"""The page: complete in itself, literal about every word, and written in one step."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.looking import page
from heedful.looking.maps import Map
from heedful.looking.overlay import SMALL, Pictures

NASTY = "</script><script>alert(1)</script><b>\"'&amp;<!--{{title}}{{sections}}"


class Reader(HTMLParser):
    """Reads a page as a browser would: its tags, its text, and the data that its script draws."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []
        self.data: list[dict[str, Any]] = []
        self.island = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.island = ("type", "application/json") in attrs

    def handle_data(self, data: str) -> None:
        if self.island:
            self.data.append(json.loads(data))
        self.text.append(data)
        self.island = False


def some_map(word: str = "a", head: float = 0.12345) -> Map:
    return Map(f"decoder.{word}", torch.tensor([[[head, 1 - head]]]), (word,), (word, "b"))


def every_section(word: str) -> list[page.Section]:
    return [
        page.Text(word, (word, word)),
        page.Figures(word, ((word, word, word),)),
        page.Curves(word, (page.Curve(word, ((0, 1.0), (1, 0.5)), word, log=True),)),
        page.Samples(word, (word, "b"), ((word, word), ("c", "d")), (True, False)),
        page.Attention(word, (page.Example(word, (some_map(word),)),), note=word),
    ]


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = page.page("A title", every_section("word"))
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\bimport\b|fetch\(|XMLHttpRequest", text)
    assert re.findall(r"""(?:src|href)\s*=\s*["']?([^"'\s>]*)""", text) == ["data:,"]
    assert "default-src 'none'" in text


def test_words_change_no_tag_of_the_page() -> None:
    plain, nasty = (Reader(page.page(word, every_section(word))) for word in ("word", NASTY))
    assert plain.tags == nasty.tags


def test_every_word_is_shown_literally() -> None:
    read = Reader(page.page(NASTY, every_section(NASTY)))
    assert read.text.count(NASTY) == 1 + 1 + 5 + 2 + 3 + 1 + 2 + 1  # title, h1, five h2, text, figures, samples, note
    chart, viewer = read.data
    shown = NASTY.replace(" ", "␣")
    assert chart["label"] == chart["curves"][0]["name"] == NASTY
    assert viewer["examples"][0]["name"] == NASTY
    assert viewer["examples"][0]["maps"][0]["rows"] == [shown]


@pytest.mark.parametrize("word", ["😀", "שלום", "日本語", "\u2028"])
def test_every_script_of_the_world_is_written(tmp_path: Path, word: str) -> None:
    page.write(tmp_path / "page.html", word, every_section(word))
    read = Reader((tmp_path / "page.html").read_bytes().decode("utf-8"))
    assert read.data[0]["label"] == word


def test_half_a_surrogate_pair_does_not_stop_a_page(tmp_path: Path) -> None:
    page.write(tmp_path / "page.html", "\ud83d", every_section("\ud83d"))
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_blank_words_are_made_visible() -> None:
    blank = Map("a", torch.ones(1, 1, 3) / 3, (" ",), ("\n", "", " the"))
    read = Reader(page.page("t", [page.Attention("t", (page.Example("e", (blank,)),))]))
    drawn = read.data[0]["examples"][0]["maps"][0]
    assert drawn["rows"] + drawn["columns"] == ["␣", "↵", "∅", "␣the"]


def test_weights_are_embedded_to_four_decimals() -> None:
    section = page.Attention("t", (page.Example("e", (some_map(head=0.123449), some_map(head=0.0))),))
    maps = Reader(page.page("t", [section])).data[0]["examples"][0]["maps"]
    assert [drawn["weights"] for drawn in maps] == [[[1234, 8766]], [[0, 10000]]]


def test_a_viewer_opens_at_the_last_cross_attention_unless_it_is_told_another() -> None:
    maps = tuple(replace(some_map(), path=path) for path in ("a.attention", "a.cross", "b.cross", "c.attention"))
    examples = (page.Example("e", maps),)
    for said, shown in (("", "layer=b.cross&head=mean"), ("layer=a.cross", "layer=a.cross")):
        section = page.Attention("t", examples, start=said)
        assert Reader(page.page("t", [section])).data[0]["start"] == shown


def test_curves_of_one_label_share_a_chart() -> None:
    names = (("train", "loss"), ("rate", "rate"), ("valid", "loss"))
    curves = tuple(page.Curve(name, ((0, 1.0),), label) for name, label in names)
    charts = Reader(page.page("t", [page.Curves("t", curves)])).data
    assert [[curve["name"] for curve in chart["curves"]] for chart in charts] == [["train", "valid"], ["rate"]]


def test_points_that_are_not_finite_are_left_out_of_a_curve() -> None:
    curve = page.Curve("train", ((0, 1.0), (1, float("nan")), (2, float("inf")), (3, 0.25)), "loss")
    assert Reader(page.page("t", [page.Curves("t", (curve,))])).data[0]["curves"][0]["points"] == [[0, 1], [3, 0.25]]


def test_pictures_that_belong_together_stand_in_rows_and_small_ones_show_their_pixels() -> None:
    small, large = np.zeros((4, 4, 3), dtype=np.uint8), np.zeros((4, SMALL, 3), dtype=np.uint8)
    html = Pictures("Pairs", (("one", small), ("two", large)), along=2).html()
    assert 'class="overlays" style="--along:2"' in html and html.count('class="small"') == 1
    assert "style=" not in Pictures("Any", (("one", large),)).html()


def test_wrong_samples_are_marked() -> None:
    html = page.Samples("t", ("input",), (("a",), ("b",)), (True, False)).html()
    assert html.count('<tr class="right">') == html.count('<tr class="wrong">') == 1
    assert "class=" not in page.Samples("t", ("input",), (("a",),)).html().split("<tbody>")[1]


def test_samples_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="every row needs 2 cells"):
        page.Samples("t", ("input", "answer"), (("a",),))
    with pytest.raises(ValueError, match="1 rows but 2 marks"):
        page.Samples("t", ("input",), (("a",),), (True, False))


def test_a_viewer_without_a_map_is_refused() -> None:
    with pytest.raises(ValueError, match="no example to show"):
        page.Attention("t", ())
    with pytest.raises(ValueError, match="no map to show"):
        page.Example("e", ())


def test_the_same_sections_give_the_same_page() -> None:
    assert page.page("t", every_section("word")) == page.page("t", every_section("word"))


def test_a_page_that_cannot_be_made_leaves_the_old_one(tmp_path: Path) -> None:
    class Broken(page.Text):
        def html(self) -> str:
            raise RuntimeError("broken")

    page.write(tmp_path / "page.html", "old", [])
    old = (tmp_path / "page.html").read_bytes()
    with pytest.raises(RuntimeError, match="broken"):
        page.write(tmp_path / "page.html", "new", [Broken("t", ())])
    assert (tmp_path / "page.html").read_bytes() == old


def test_writing_leaves_nothing_aside(tmp_path: Path) -> None:
    page.write(tmp_path / "page.html", "t", every_section("word"))
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_page_says_which_keys_choose() -> None:
    template = files("heedful.looking").joinpath("page.html").read_text(encoding="utf-8")
    assert all(f'"{what}")' in template for what in ("head", "layer", "word", "example", "mean over heads"))
