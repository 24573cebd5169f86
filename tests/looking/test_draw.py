"""Pictures: every ending, the same bytes each time, and any word on the axes."""

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from heedful.errors import Refusal
from heedful.looking import draw
from heedful.looking.figure_style import ramp
from heedful.looking.heatmap_rows import LARGE, SMALL, Band, Scale
from heedful.looking.maps import Map

SCRIPTS = ("日本語", "😀", "👩‍👩‍👧", "שלום", "مرحبا", "हिन्दी")
ODD = (*SCRIPTS, "</script>", "$x^$", "&", "'\"", " ", "\n", "", "\x00", "\ud800", "a" * 40)


def random_map(heads: int, rows: tuple[str, ...], columns: tuple[str, ...], path: str = "encoder.blocks.0") -> Map:
    scores = torch.randn(heads, len(rows), len(columns), generator=torch.Generator().manual_seed(heads))
    return Map(path, (3 * scores).softmax(-1), rows, columns)


def two_layers() -> list[Map]:
    return [
        random_map(2, tuple("abc"), tuple("abc")),
        random_map(3, tuple("xy"), tuple("abc"), "decoder.blocks.0.cross"),
    ]


@pytest.mark.parametrize(
    ("ending", "start"),
    [
        (".png", b"\x89PNG"),
        (".PNG", b"\x89PNG"),
        (".svg", b"<?xml"),
        (".json", b'{"maps"'),
        (".html", b"<!doctype html>"),
    ],
)
def test_the_ending_says_what_is_written(tmp_path: Path, ending: str, start: bytes) -> None:
    draw.write(two_layers(), tmp_path / f"maps{ending}")
    assert (tmp_path / f"maps{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["maps.gif", "maps", "maps.tar.gz"])
def test_an_unknown_ending_is_refused_in_one_line_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal, match=r"\.png, \.svg, \.json, \.html$") as refusal:
        draw.write(two_layers(), tmp_path / name)
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", draw.WRITERS)
def test_no_map_at_all_is_refused(tmp_path: Path, ending: str) -> None:
    with pytest.raises(Refusal, match="no map to write"):
        draw.write([], tmp_path / f"maps{ending}")


@pytest.mark.parametrize("ending", draw.WRITERS)
def test_the_same_maps_give_the_same_bytes(tmp_path: Path, ending: str) -> None:
    for name in "ab":
        draw.write(two_layers(), tmp_path / f"{name}{ending}")
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


def test_an_svg_holds_its_words_as_text_and_no_date(tmp_path: Path) -> None:
    draw.write(two_layers(), tmp_path / "maps.svg")
    svg = (tmp_path / "maps.svg").read_text(encoding="utf-8")
    assert ">decoder.blocks.0.cross</text>" in svg
    assert "dc:date" not in svg


def test_the_json_of_a_picture_is_exact(tmp_path: Path) -> None:
    draw.write(two_layers(), tmp_path / "maps.json")
    first = Map.from_json(json.loads((tmp_path / "maps.json").read_text())["maps"][0])
    assert torch.equal(first.weights, two_layers()[0].weights)


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_any_sign_is_drawn_in_silence(tmp_path: Path, ending: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw.grid([random_map(1, ODD, ODD, path="$odd^$")], tmp_path / f"odds{ending}")


@pytest.mark.parametrize(("heads", "words"), [(1, 2), (4, 24), (16, 64)])
def test_a_grid_shows_every_head_at_a_size_that_can_be_read(tmp_path: Path, heads: int, words: int) -> None:
    tokens = tuple(f"w{i}" for i in range(words))
    draw.grid([random_map(heads, tokens, tokens)], tmp_path / "grid.png")
    with Image.open(tmp_path / "grid.png") as picture:
        assert 200 * heads < picture.width < 10_000
        assert 200 < picture.height < 1_000


@pytest.mark.parametrize("words", [2, 24, 64, 1000])
@pytest.mark.parametrize("scale", [SMALL, LARGE])
def test_words_on_an_axis_never_overlap(words: int, scale: Scale) -> None:
    apart = scale.side(words) / words * scale.every(words)
    assert apart >= scale.font / 72


@pytest.mark.parametrize("count", [1, 2, 6, 25])
def test_a_picture_of_many_maps_is_not_a_strip(tmp_path: Path, count: int) -> None:
    words = tuple("abcdefgh")
    maps = [Map(f"layer {at}", torch.eye(8)[None], words, words) for at in range(count)]
    draw.grid(maps, tmp_path / "all.png")
    with Image.open(tmp_path / "all.png") as picture:
        wide, high = picture.size
    assert 1 / 2.2 < wide / high < 2.2
    svg = tmp_path / "all.svg"
    draw.grid(maps, svg)
    assert [f"layer {at}<" in svg.read_text(encoding="utf-8") for at in range(count)] == [True] * count


def test_a_picture_says_what_is_no_head_and_what_is_a_mean_and_names_beside_each_other_have_room(
    tmp_path: Path,
) -> None:
    words = tuple("abcdefgh")
    maps = [Map(f"encoder.blocks.{at}.attention", torch.eye(8)[None], words, words, "mean over windows") for at in "01"]
    rolled = Map("encoder rollout", torch.eye(8)[None], words, words, whole="rollout, 50% dropped")
    draw.grid([rolled, *maps], tmp_path / "told.svg")
    svg = (tmp_path / "told.svg").read_text(encoding="utf-8")
    assert svg.count("encoder.blocks.0.attention, mean over windows<") == 1
    assert svg.count(">rollout, 50% dropped<") == 1 and svg.count(">head 0<") == 2
    assert Band(maps[0], (0,), SMALL).width > 3.3  # inches, of 45 signs


def test_the_colours_darken_steadily() -> None:
    red, green, blue = ramp()(np.linspace(0, 1, 65))[:, :3].T
    light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    assert all(before > after for before, after in itertools.pairwise(light))


def test_maps_that_are_compared_have_one_scale_of_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(draw, "save", lambda figure, path: drawn.append(figure))
    each = {"low": 0.2, "high": 0.8}
    maps = [Map(name, torch.tensor([[[most, 0.1]]]), ("a",), ("b", "c")) for name, most in each.items()]
    for together in (False, True):
        draw.write(maps, tmp_path / "a.png", together=together)
        draw.write(maps, tmp_path / f"{together}.html", together=together)
        assert f'"together":{str(together).lower()}' in (tmp_path / f"{together}.html").read_text(encoding="utf-8")
    ends = [[image.get_clim()[1] for axes in figure.axes for image in axes.images] for figure in drawn]
    assert ends == [pytest.approx([0.2, 0.8]), pytest.approx([0.8, 0.8])]
