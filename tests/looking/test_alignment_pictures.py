"""Pictures of alignments: dots and squares where the links are, the same bytes each time, and a page of words."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image

from heedful.data.parallel_sample import Link, Links
from heedful.errors import Refusal
from heedful.looking import draw, page
from heedful.looking.alignment import Alignment
from heedful.looking.figure_style import MARK
from heedful.looking.maps import Map
from tests.looking.test_draw import ODD
from tests.looking.test_page import NASTY, Reader


def aligned(
    source: Sequence[str] = ("A", "dog", "runs", "."),
    target: Sequence[str] = ("bate", "ribazu", "."),
    gold: Links | None = None,
) -> Alignment:
    scores = torch.randn(len(target), len(source), generator=torch.Generator().manual_seed(1))
    links = tuple((at % len(source), at) for at in range(len(target)))
    return Alignment(tuple(source), tuple(target), scores.softmax(-1), links, gold)


def pixels(path: Path) -> NDArray[np.uint8]:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def marks(path: Path) -> tuple[int, float, float]:
    """How many pixels have the colour of the marks, and where their middle is, across and down."""
    colour = [round(255 * part) for part in to_rgb(MARK)]
    down, across = np.nonzero((pixels(path) == colour).all(-1))
    return (len(down), across.mean(), down.mean()) if len(down) else (0, 0.0, 0.0)


@pytest.mark.parametrize(("ending", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_an_alignment_is_drawn_and_drawn_alike_again(tmp_path: Path, ending: str, start: bytes) -> None:
    one = aligned()
    for name in "ab":
        draw.alignment(one.map, one.links, tmp_path / f"{name}{ending}", gold=[(1, 0)])
    first, second = ((tmp_path / f"{name}{ending}").read_bytes() for name in "ab")
    assert first == second and first.startswith(start)


def test_every_link_is_a_dot_and_every_given_one_a_square(tmp_path: Path) -> None:
    one = aligned()

    def count(links: Sequence[Link], gold: Sequence[Link]) -> int:
        draw.alignment(one.map, links, tmp_path / "one.png", gold)
        return marks(tmp_path / "one.png")[0]

    dot, square = count(one.links[:1], ()), count((), one.links[:1])
    assert count((), ()) == 0 < min(dot, square)
    assert count(one.links, ()) == pytest.approx(3 * dot, rel=0.2)
    assert count((), one.links) == pytest.approx(3 * square, rel=0.2)
    assert count(one.links, one.links) == pytest.approx(3 * (dot + square), rel=0.2)


def test_a_dot_stands_at_its_words_source_across_and_target_down(tmp_path: Path) -> None:
    one = aligned()
    middle = {}
    for link in ((0, 0), (3, 0), (0, 2), (3, 2)):
        draw.alignment(one.map, [link], tmp_path / "one.png")
        middle[link] = marks(tmp_path / "one.png")[1:]
    right, down = middle[3, 0], middle[0, 2]
    assert right[0] > middle[0, 0][0] + 50 and right[1] == pytest.approx(middle[0, 0][1], abs=2)
    assert down[1] > middle[0, 0][1] + 50 and down[0] == pytest.approx(middle[0, 0][0], abs=2)
    assert middle[3, 2] == pytest.approx((right[0], down[1]), abs=2)


def test_an_svg_holds_the_words_and_says_what_the_marks_mean(tmp_path: Path) -> None:
    one = aligned()
    draw.alignment(one.map, one.links, tmp_path / "one.svg", gold=one.links)
    svg = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert all(f">{word}</text>" in svg for word in (*one.source, *one.target))
    assert "linked" in svg and "given" in svg


def test_the_heads_of_a_map_are_drawn_as_their_mean(tmp_path: Path) -> None:
    heads = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    draw.alignment(Map("a", heads, ("x",), ("a", "b")), [(0, 0)], tmp_path / "heads.png")
    draw.alignment(Map("a", torch.full((1, 1, 2), 0.5), ("x",), ("a", "b")), [(0, 0)], tmp_path / "mean.png")
    assert (tmp_path / "heads.png").read_bytes() == (tmp_path / "mean.png").read_bytes()


def test_several_alignments_stand_below_each_other_and_too_many_are_refused(tmp_path: Path) -> None:
    one = aligned()
    examples = [(one.map, one.links, ())]
    draw.alignments(examples, tmp_path / "one.png")
    draw.alignments(examples * 3, tmp_path / "three.png")
    one_tall, three_tall = (len(pixels(tmp_path / f"{name}.png")) for name in ("one", "three"))
    assert 2.5 * one_tall < three_tall < 3.5 * one_tall
    with pytest.raises(Refusal, match=r"41 alignments are too many for a picture; choose 40, or write \.html"):
        draw.alignments(examples * 41, tmp_path / "many.png")


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_any_sign_is_drawn_in_silence(tmp_path: Path, ending: str) -> None:
    one = aligned(ODD, ODD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw.alignment(one.map, one.links, tmp_path / f"odd{ending}", one.links)


# ---------------------------------------------------------------------- the page


def read(*examples: Alignment, note: str = "") -> Reader:
    return Reader(page.page("t", [page.Alignment("t", examples, note)]))


def test_the_page_gets_words_weights_and_links() -> None:
    gold = Links(frozenset({(1, 0)}), frozenset({(1, 0), (2, 1)}))
    plain, compared = read(aligned(), aligned(gold=gold)).data[0]["examples"]
    one = aligned()
    assert plain["source"] == list(one.source) and plain["target"] == list(one.target)
    assert plain["links"] == [[0, 0], [1, 1], [2, 2]] and "sure" not in plain
    assert plain["weights"] == (one.matrix * 10_000).round().long().tolist()
    assert compared["sure"] == [[1, 0]] and compared["possible"] == [[1, 0], [2, 1]]


def test_words_change_no_tag_of_the_page_and_are_shown_literally() -> None:
    plain, nasty = read(aligned(), note="word"), read(aligned((NASTY, "b", "c", "d")), note=NASTY)
    assert plain.tags == nasty.tags
    assert nasty.data[0]["examples"][0]["source"][0] == NASTY.replace(" ", "␣")
    assert NASTY in nasty.text


def test_blank_words_are_made_visible_on_the_page() -> None:
    drawn = read(aligned((" ", "b"), ("\n",))).data[0]["examples"][0]
    assert drawn["source"] + drawn["target"] == ["␣", "b", "↵"]


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = page.page("A title", [page.Alignment("t", (aligned(),))])
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\bimport\b|fetch\(|XMLHttpRequest", text)


def test_no_example_is_refused_and_an_answer_without_words_is_not() -> None:
    with pytest.raises(ValueError, match="no example to show"):
        page.Alignment("t", ())
    assert read(Alignment(("a",), (), torch.zeros(0, 1), ())).data[0]["examples"][0]["target"] == []


def test_sections_stand_before_the_maps_of_a_page(tmp_path: Path) -> None:
    one = aligned()
    draw.write([one.map], tmp_path / "page.html", "name", [page.Alignment("Words", (one,))])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 0 < text.index('<div class="aligned">') < text.index('<div class="viewer">')
