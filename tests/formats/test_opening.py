"""Files of a folder are opened in one way; headers say what safetensors itself would read; words need no compiler."""

import ast
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from heedful.errors import Refusal
from heedful.models import part_words
from heedful.safe import opening, plain_data, safetensors_header
from heedful.training import checkpoint
from heedful.training.trained_run import load_trained
from tests.formats.malice.good import make

KINDS = [*safetensors_header.DTYPES.values()]
SHAPES = st.lists(st.integers(0, 4), max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=9), st.tuples(SHAPES, st.sampled_from(KINDS))))
def test_a_header_is_read_as_safetensors_reads_it(tmp_path_factory: Any, parts: dict[str, Any]) -> None:
    tensors = {name: torch.zeros(shape, dtype=dtype) for name, (shape, dtype) in parts.items() if name[:2] != "__"}
    path = tmp_path_factory.mktemp("header") / "a.safetensors"
    path.write_bytes(save({**tensors, "more": torch.zeros(9)}, {"about": "any"}))
    ours, theirs = safetensors_header.describe_tensors(path), load(path.read_bytes())
    assert {name: (one.shape, one.dtype) for name, one in ours.items()} == {
        name: (one.shape, one.dtype) for name, one in theirs.items()
    }
    assert all(one.is_meta for one in ours.values())


@pytest.mark.parametrize("good", ["pairs", "sets", "series"])
@pytest.mark.parametrize("name", ["spec.json", "task.json", "model.safetensors"])
def test_a_damaged_folder_is_read_or_refused(tmp_path: Path, good: str, name: str) -> None:
    make(tmp_path / "model", good)
    dice, whole = random.Random(good + name), (tmp_path / "model" / name).read_bytes()
    lines: list[str] = []
    for _ in range(30):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 3))):
            data[dice.randrange(min(len(data), 2000))] = dice.choice(b'0123456789-{}[]",:.e \x00\xff')
        (tmp_path / "model" / name).write_bytes(data[: dice.choice((len(data), dice.randrange(len(data))))])
        try:
            load_trained(tmp_path / "model")
        except Refusal as error:
            lines.append(str(error))
    assert len(lines) > 5
    assert all(line.isprintable() and len(line) < 1000 for line in lines)


@settings(max_examples=200)
@given(
    st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True),
    st.dictionaries(
        st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True),
        st.one_of(
            st.integers(1 - part_words.MOST, part_words.MOST - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            st.booleans(),
            st.none(),
            st.text("ab c'", max_size=5),
        ),
        max_size=3,
    ),
    st.sampled_from(["", " ", "  "]),
)
def test_words_are_read_as_python_would_read_them(name: str, given_: dict[str, Any], blank: str) -> None:
    inner = f"{blank},{blank}".join(f"{key}{blank}={blank}{value!r}" for key, value in given_.items())
    word = f"{blank}{name}{blank}({blank}{inner}{blank})"
    try:
        tree = ast.parse(word.strip(), mode="eval").body
    except SyntaxError:  # a keyword of the language
        return
    assert isinstance(tree, ast.Call)
    assert part_words.parse(word) == (name, {str(pair.arg): ast.literal_eval(pair.value) for pair in tree.keywords})
    assert part_words.parse(name) == (name, {})


def test_a_word_may_say_true_and_false_as_recipes_do() -> None:
    assert part_words.parse("crop(padding=4, reflect=true)") == ("crop", {"padding": 4, "reflect": True})
    assert part_words.parse("crop(reflect=false)") == ("crop", {"reflect": False})
    with pytest.raises(Refusal, match="cannot be read"):
        part_words.parse("crop(reflect=tRUE)")


@pytest.mark.parametrize("number", [part_words.MOST, -part_words.MOST, "9" * 5000])
def test_a_number_beyond_those_of_tensors_is_refused(number: int | str) -> None:
    with pytest.raises(Refusal, match="cannot be read"):
        part_words.parse(f"window(size={number})")


@settings(max_examples=200)
@given(st.text("a(=1,)'\"._ -+eTrue", max_size=14))
def test_no_word_means_more_than_python_says(word: str) -> None:
    try:
        name, values = part_words.parse(word)
    except Refusal:
        return
    tree = ast.parse(word.strip(), mode="eval").body
    if isinstance(tree, ast.Call):
        assert values == {str(pair.arg): ast.literal_eval(pair.value) for pair in tree.keywords}
    else:
        assert isinstance(tree, (ast.Name, ast.Constant)) and values == {} and name == word.strip()


def test_a_folder_that_is_a_link_is_where_it_leads(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere" / "model", "sets")
    (tmp_path / "run").symlink_to("elsewhere")
    (tmp_path / "model").symlink_to("elsewhere/model")
    load_trained(tmp_path / "run")
    load_trained(tmp_path / "model")


def test_names_that_begin_alike_are_not_within(tmp_path: Path) -> None:
    for name in ("model", "model-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)
    (tmp_path / "model" / "b").symlink_to("../model-2/a")
    (tmp_path / "model" / "c").symlink_to("a")
    with pytest.raises(Refusal, match="b is a link that leads out of the folder"):
        opening.inside(tmp_path / "model" / "b")
    assert opening.inside(tmp_path / "model" / "c").read_text() == "model"
    with pytest.raises(Refusal, match="b is a link that leads out of the folder"):
        opening.check_all(tmp_path / "model")
    os.unlink(tmp_path / "model" / "b")
    opening.check_all(tmp_path / "model")


def test_a_file_is_as_large_as_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(1 << 20))
    assert len(opening.content(tmp_path / "a", 1 << 20)) == 1 << 20
    with pytest.raises(ValueError, match=r"^it is larger than 1023 kB$"):
        opening.content(tmp_path / "a", (1 << 20) - 1)


@pytest.mark.parametrize("value", [{}, {"a": [1, -2.5e3, None, True, "ü\n"]}, {"a": {"b": {}}, "b": {"b": 1}}])
def test_plain_values_are_read_as_they_were_written(value: Any) -> None:
    assert plain_data.json_of(json.dumps(value)) == value
    assert plain_data.yaml_of(json.dumps(value, ensure_ascii=False)) == value


def test_a_checkpoint_whose_manifest_tells_another_step_is_refused(tmp_path: Path) -> None:
    place = checkpoint.write(tmp_path, checkpoint.Progress(10), {"model": {"a": torch.zeros(1)}}, 1, {})
    told = (place / "manifest.json").read_text().replace('"step": 10', '"step": 99')
    (place / "manifest.json").write_text(told)
    with pytest.raises(Refusal, match=r"progress.json says step 10; copy or train it again"):
        checkpoint.read_checkpoint(place)
