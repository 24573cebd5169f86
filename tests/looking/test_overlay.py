"""Weights over images: words have their room whatever the image's shape, and colours say what they go from and to."""

import numpy as np
import pytest
import torch

from heedful.looking import overlay
from heedful.looking.figure_style import style
from heedful.looking.overlay import Overlay, caption, span


def part(high: int, wide: int, heads: int = 8) -> Overlay:
    each = tuple((f"head {at}", torch.rand(2, 2)) for at in range(heads))
    return Overlay("encoder.blocks.0.attention", np.zeros((high, wide, 3), dtype=np.uint8), each)


def boxes(parts):
    """Where the words and the pictures stand, in pixels."""
    with style():
        figure = overlay.draw_parts(parts)
        figure.draw_without_rendering()
        texts = [*figure.texts, *(axes.title for axes in figure.axes)]
        words = [text.get_window_extent() for text in texts if text.get_text()]
        return words, [axes.get_window_extent() for axes in figure.axes]


@pytest.mark.parametrize(("high", "wide"), [(32, 32), (24, 40), (16, 64), (64, 16), (8, 256), (256, 8)])
def test_no_word_lies_on_another_or_on_a_picture(high, wide):
    words, pictures = boxes([part(high, wide), part(high, wide, heads=2), part(wide, high)])
    every = [*words, *pictures]
    assert len(words) == 3 + 9 + 3 + 9 and len(pictures) == 21
    assert not [(at, to) for at, one in enumerate(every) for to in range(at) if one.overlaps(every[to])]


@pytest.mark.parametrize(("high", "wide"), [(32, 32), (16, 64), (64, 16)])
def test_a_picture_keeps_its_shape(high, wide):
    for box in boxes([part(high, wide)])[1]:
        assert box.height / box.width == pytest.approx(high / wide)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([0.04123, 0.0476], "0.041 to 0.048"),
        ([0.04121, 0.04129], "0.0412 to 0.0413"),
        ([0.0, 1.0, 0.5], "0 to 1"),
        ([0.25, 0.25], "0.25 everywhere"),
    ],
)
def test_a_scale_is_told_in_as_few_digits_as_tell_its_ends_apart(weights, said):
    assert span(torch.tensor([weights])) == said
    assert caption("mean", torch.tensor([weights])) == f"mean\n{said}"


def test_the_page_tells_the_scale_too_but_segments_have_none():
    image = np.zeros((4, 4, 3), dtype=np.uint8)
    named = ("mean", torch.tensor([[0.25, 0.5]])), ("segment", torch.tensor([[0.0, 1.0]]))
    html = Overlay("a", image, named).html()
    assert "<figcaption>mean<br>0.25 to 0.5</figcaption>" in html and "<figcaption>segment</figcaption>" in html
