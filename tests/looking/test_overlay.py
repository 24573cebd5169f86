"""Weights over images: words have their room whatever the image's shape, and colours say what they go from and to."""

import json

import numpy as np
import pytest
import torch

from heedful.looking.figure_style import style
from heedful.looking.overlay import Overlay, caption, span
from heedful.looking.overlay_figure import HIGHEST, draw_parts


def part(high: int, wide: int, heads: int = 8) -> Overlay:
    each = tuple((f"head {at}", torch.rand(2, 2)) for at in range(heads))
    return Overlay("encoder.blocks.0.attention", np.zeros((high, wide, 3), dtype=np.uint8), each)


def boxes(parts):
    """Where the words and the pictures stand, in pixels."""
    with style():
        figure = draw_parts(parts)
        figure.draw_without_rendering()
        texts = [*figure.texts, *(axes.title for axes in figure.axes)]
        words = [text.get_window_extent() for text in texts if text.get_text()]
        words += [text.get_window_extent() for axes in figure.axes for text in axes.texts]  # the ends of scales
        return words, [axes.get_window_extent() for axes in figure.axes]


@pytest.mark.parametrize(("high", "wide"), [(32, 32), (24, 40), (16, 64), (64, 16), (8, 256), (256, 8)])
def test_no_word_lies_on_another_or_on_a_picture(high, wide):
    words, pictures = boxes([part(high, wide), part(high, wide, heads=2), part(wide, high)])
    every = [*words, *pictures]
    assert len(words) == 3 + 9 + 3 + 9 + 2 * 3 and len(pictures) == 21 + 3  # with the scale of each part
    assert not [(at, to) for at, one in enumerate(every) for to in range(at) if one.overlaps(every[to])]


@pytest.mark.parametrize(("high", "wide"), [(32, 32), (16, 64), (64, 16)])
def test_a_picture_keeps_its_shape(high, wide):
    scale, *pictures = sorted(boxes([part(high, wide)])[1], key=lambda box: box.height)
    assert scale.height < 0.2 * 100 and len(pictures) == 9
    for box in pictures:
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


def images(figure):
    return [image for axes in figure.axes for image in axes.images if image.get_alpha() is not None]


def test_heads_share_one_scale_and_what_is_of_other_kinds_has_its_own():
    each = ("low", torch.tensor([[0.1, 0.2]])), ("high", torch.tensor([[0.3, 0.9]]))
    image = np.zeros((40, 80, 3), dtype=np.uint8)
    with style():
        one, own = (draw_parts([Overlay("a", image, each, own=own)]) for own in (False, True))
    assert [image.get_clim() for image in images(one)] == [pytest.approx((0.1, 0.9))] * 2
    assert [image.get_clim() for image in images(own)] == [pytest.approx((0.1, 0.2)), pytest.approx((0.3, 0.9))]


def test_weights_lie_where_the_model_sees_the_photograph_and_the_photograph_is_grey():
    image = np.zeros((100, 200, 3), dtype=np.uint8)
    image[..., 0] = 255
    named = (("head 0", torch.rand(2, 2)),)
    with style():
        figure = draw_parts([Overlay("a", image, named, frame=(0.25, 0.0, 0.75, 1.0))], smooth=True)
    [heat] = images(figure)
    assert heat.get_extent() == [50.0, 150.0, 100.0, 0.0] and heat.get_interpolation() == "bicubic"
    below = next(axes for axes in figure.axes if heat in axes.images).images[0].get_array()
    assert below.shape == (100, 200) and set(np.unique(below)) == {24 + int(0.87 * 0.2126 * 255)}


def test_pictures_are_as_large_as_leaves_the_whole_below_its_highest():
    few, many = (draw_parts([part(32, 32, heads=12)] * parts) for parts in (1, 8))
    assert max(axes.get_position().width * few.get_figwidth() for axes in few.axes) == pytest.approx(3.4)
    assert max(axes.get_position().width * many.get_figwidth() for axes in many.axes) < 2.0
    assert many.get_figheight() <= HIGHEST


def test_the_page_holds_the_very_weights_and_nothing_of_what_is_not_told():
    named = ("mean", torch.tensor([[0.25, torch.nan]])), ("segment", torch.tensor([[0.0, 1.0]]))
    html = Overlay("a", np.zeros((4, 4, 3), dtype=np.uint8), named, frame=(0.0, 0.25, 1.0, 0.75)).html()
    data = json.loads(html.partition('json">')[2].partition("</script>")[0])
    assert data["frame"] == [0.0, 0.25, 1.0, 0.75] and data["own"] is False
    assert data["each"][0] == {"name": "mean", "binary": False, "weights": [[0.25, None]]}
    assert data["each"][1] == {"name": "segment", "binary": True, "weights": [[0.0, 1.0]]}
    assert "http" not in html
