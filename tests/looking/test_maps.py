"""Maps: what they accept, and that JSON keeps every number."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heedful.errors import Failure
from heedful.looking.maps import Map, visible, write_json


def some_map(heads: int = 2) -> Map:
    scores = torch.randn(heads, 3, 4, generator=torch.Generator().manual_seed(0))
    return Map("decoder.blocks.0.cross", scores.softmax(-1), ("<start>", "a", " "), ("a", "é", "😀", "</script>"))


def same(one: Map, other: Map) -> bool:
    words = (one.path, one.rows, one.columns) == (other.path, other.rows, other.columns)
    return words and torch.equal(one.weights, other.weights)


def test_a_map_keeps_what_is_said_of_it() -> None:
    plain, told = some_map(), replace(some_map(1), note="mean over windows", whole="rollout")
    assert (plain.title, plain.named(1)) == ("decoder.blocks.0.cross", "head 1") and "note" not in plain.to_json()
    assert (told.title, told.named(0)) == ("decoder.blocks.0.cross, mean over windows", "rollout")
    again = Map.from_json(json.loads(json.dumps(told.to_json())))
    assert (again.note, again.whole) == (told.note, told.whole)


def test_a_map_counts_its_heads() -> None:
    assert some_map(heads=5).heads == 5


@pytest.mark.parametrize("shape", [(), (3, 4), (2, 4, 3), (2, 3, 5), (0, 3, 4), (1, 2, 3, 4)])
def test_weights_that_do_not_fit_the_words_are_refused_in_one_sentence(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match=r"^encoder.blocks.0: weights are .*; heads x 3 rows x 4 columns needed$"
    ) as refusal:
        Map("encoder.blocks.0", torch.zeros(shape), ("a", "b", "c"), ("a", "b", "c", "d"))
    assert "\n" not in str(refusal.value)


def test_weights_of_another_dtype_are_refused_with_the_cure() -> None:
    with pytest.raises(ValueError, match=r"pass weights.float\(\).cpu\(\)"):
        Map("a", torch.zeros(1, 1, 1, dtype=torch.float64), ("a",), ("b",))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(Failure, match="not finite"):
        Map("a", torch.full((1, 1, 1), value), ("a",), ("b",))


def test_the_span_holds_zero_and_every_weight() -> None:
    assert Map("a", torch.tensor([[[0.25, 0.5]]]), ("a",), ("b", "c")).span == (0.0, 0.5)
    assert Map("a", torch.tensor([[[-0.25, 0.5]]]), ("a",), ("b", "c")).span == (-0.25, 0.5)
    assert Map("a", torch.zeros(1, 1, 2), ("a",), ("b", "c")).span == (0.0, 1.0)


@pytest.mark.parametrize("value", [1 / 3, 0.1, 1e-30, 1.4e-45, -0.7, 0.99999994])
def test_a_map_comes_back_from_json_exactly(value: float) -> None:
    one = Map("a.b", torch.full((2, 1, 2), value), ("q",), ("k", "l"))
    assert same(one, Map.from_json(json.loads(json.dumps(one.to_json()))))


def test_a_file_of_maps_comes_back_exactly(tmp_path: Path) -> None:
    maps = [some_map(1), some_map(4)]
    write_json(maps, tmp_path / "maps.json")
    read = [Map.from_json(value) for value in json.loads((tmp_path / "maps.json").read_text())["maps"]]
    assert all(same(one, other) for one, other in zip(maps, read, strict=True))


@pytest.mark.parametrize(
    ("word", "shown"),
    [(" ", "␣"), (" the", "␣the"), ("\n", "↵"), ("\t", "⇥"), ("", "∅"), ("\x00", "\\x00"), ("\u200b", "\\u200b")],
)
def test_words_without_ink_are_made_visible(word: str, shown: str) -> None:
    assert visible(word) == shown


@pytest.mark.parametrize("word", ["the", "<b>", "é", "日本語", "שלום", "👩‍👩‍👧", "$x^2$"])
def test_other_words_stay_as_they_are(word: str) -> None:
    assert visible(word) == word
