"""Notebooks: what is seen, drawn, answered and built shows itself, without a request and whatever the words are."""

from html import unescape

import pytest
import torch

import heedful
from heedful.errors import Refusal
from heedful.looking import notebook
from heedful.looking.page import Text as Paragraphs
from heedful.results import Label, Neighbours, Result, Tags, Text, Vector
from tests.laws import families

NASTY = "<script>alert(1)</script>&\"'"


@pytest.fixture(scope="module")
def seen():
    torch.manual_seed(0)
    model = heedful.build("transformer", vocab=20, width=16, heads=2, depth=1).eval()
    with heedful.look(model) as found:
        model(torch.randint(4, 20, (2, 5)), torch.randint(4, 20, (2, 3)))
    return found


def test_drawn_maps_have_the_words_and_the_very_weights_of_one_item_of_the_batch(seen):
    drawn = heedful.draw(seen, list("abc"), source=list("vwxyz"), item=1)
    words = {map.path: ("".join(map.rows), "".join(map.columns)) for map in drawn.maps}
    assert words == {
        "encoder.blocks.0.attention": ("vwxyz", "vwxyz"),
        "decoder.blocks.0.attention": ("abc", "abc"),
        "decoder.blocks.0.cross": ("abc", "vwxyz"),
    }
    for map in drawn.maps:
        torch.testing.assert_close(map.weights, seen.weights(map.path)[1].detach())
    assert seen.show().maps[0].rows == tuple("01234") and "3 attention maps" in repr(drawn)


def test_what_is_drawn_is_a_page_in_a_notebook_and_any_file_that_look_writes(seen, tmp_path):
    drawn = seen.show([NASTY, "b", "c"], list("vwxyz"))
    html = drawn._repr_html_()
    assert html.startswith("<iframe") and "<script" not in html and html.count("</iframe>") == 1
    inside = unescape(html.partition('srcdoc="')[2].rpartition('"')[0])
    assert '<div class="viewer">' in inside and "alert(1)</script>" not in inside
    for ending in (".png", ".json", ".html"):
        assert drawn.save(tmp_path / f"seen{ending}").stat().st_size > 1000
    assert "decoder.blocks.0.cross" in unescape(seen._repr_html_())
    assert "decoder.blocks.0.cross" in unescape(drawn.maps[-1]._repr_html_())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tokens": ["a"]}, "tokens has 1 words, and attention was over 3 or 5; give a word for each place"),
        ({"source": ["a"] * 9}, "source has 9 words"),
        ({"item": 2}, "item 2 is not in a batch of 2; choose one from 0 to 1"),
    ],
)
def test_words_that_do_not_fit_are_refused(seen, given, said):
    with pytest.raises(Refusal, match=said):
        heedful.draw(seen, **given)


def test_nothing_is_drawn_of_a_model_that_was_not_called():
    with heedful.look(heedful.build("predictor", vocab=9, classes=2, width=8, heads=2, depth=1)) as nothing:
        pass
    assert "nothing was seen" in nothing._repr_html_()
    with pytest.raises(Refusal, match="call the model within"):
        nothing.show()


@pytest.mark.parametrize(
    ("result", "rows"),
    [
        (Label("a", 0.75, (("b", 0.25), ("a", 0.75))), [("a", "75.0 %", 0.75), ("b", "25.0 %", 0.25)]),
        (Tags((NASTY, "Rome"), ("O", "B-LOC")), [(NASTY, "O"), ("Rome", "B-LOC")]),
        (Text("so", -1.5), [("text", "so"), ("score", "-1.5")]),
        (Neighbours((("near", 0.5),)), [("near", "0.500", 0.5)]),
    ],
)
def test_a_result_is_a_table_of_what_it_says(result: Result, rows):
    assert result.rows() == rows
    html = result._repr_html_()
    assert html.count("<tr>") == len(rows) and "<script" not in html


def test_a_long_vector_does_not_fill_a_notebook():
    assert len(Vector(tuple(float(at) for at in range(5000)))._repr_html_()) < 1200


@pytest.mark.parametrize("name", families.FAMILIES)
def test_a_model_of_every_family_says_its_spec_and_its_parts(name):
    model = families.model(name, "softmax")
    html = model._repr_html_()
    assert f"{sum(one.numel() for one in model.parameters()):,} weights" in html
    assert model.spec.family in html and all(part in html for part, _ in model.named_children())


def test_a_frame_holds_a_whole_page_and_escapes_it():
    html = notebook.frame("t", [Paragraphs("t", (NASTY,))])
    assert html.count('"') == 6 and "&lt;!doctype html&gt;" in html
