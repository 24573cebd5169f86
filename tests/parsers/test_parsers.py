"""Whatever a file or a key holds, it is read or refused with a line: by seeded damage at every door, and by hand."""

from pathlib import Path

import pytest
import torch

import heedful
from heedful import recipes
from heedful.checkpoints import plain
from heedful.errors import Refusal
from heedful.training import record, table
from tests.parsers.attack import Attack
from tests.parsers.doors import DOORS

COUNT = {"folders": 20, "public_folders": 40, "own_recipes": 40, "runs": 30, "keys": 30, "spec_words": 25}


@pytest.mark.parametrize("door", DOORS)
def test_what_is_damaged_is_read_or_refused_with_a_line(door: str, tmp_path: Path) -> None:
    attack = Attack(door, tmp_path / door, 0)
    assert attack.go_on(COUNT.get(door, 150)) == []
    assert 0 < attack.refused < attack.count


@pytest.mark.parametrize(
    "scalar", ["!!bool x", '!!int ""', "!!float x", "!!timestamp x", "!!binary é", "!!set x", "<<"]
)
def test_a_tag_that_a_value_belies_is_no_yaml(scalar: str) -> None:
    with pytest.raises(plain.yaml.YAMLError):
        plain.yaml_of(f"a: {scalar}")
    with pytest.raises(Refusal, match=r"^training.steps=.* does not fit: it should be a whole number$"):
        recipes.resolve("reverse", [f"training.steps={scalar}"])


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3", "a: {b: 1, 'b': 2}", "- {yes: 1, true: 2}"])
def test_no_key_stands_twice_in_yaml(text: str) -> None:
    with pytest.raises(plain.Twice, match="stands there twice"):
        plain.yaml_of(text)
    with pytest.raises(Refusal, match=r"'model=.*' cannot be read: key 'width' stands there twice"):
        recipes.resolve("reverse", ["model={width: 8, width: 16}"])


SHAPES = {  # of a recipe, and what it lacks or has wrong; with changes that look into that
    "data: toy\nmodel: {}": "task is not given; add task=...",
    "task: pairs\nmodel: {}": "data is not given; add data=...",
    "task: pairs\ndata: reverse": "model is not given; add model=...",
    "task: pairs\ndata: 5\nmodel: {}": "data=5 does not fit: it should be keys with values",
    "task: pairs\ndata: x\nmodel: {}\nsets: 3": "sets=3 does not fit: it should be keys with values",
    "task: pairs\ndata: x\nmodel: {}\nothers: abc": "others=abc does not fit: it should be keys with values",
    "task: pairs\ndata: x\nmodel: {}\ntoy: {data: 5}": "data=5 does not fit: it should be keys with values",
    "task: pairs\ndata: x\nmodel: {}\nsets: {a: 3}": "sets.a=3 does not fit: it should be keys with values",
}


@pytest.mark.parametrize("text", SHAPES)
def test_a_recipe_of_ones_own_that_is_none_is_refused_by_key(text: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(text)
    for changes in (["data=toy"], ["data=a", "data=toy"]):
        with pytest.raises(Refusal) as refused:
            recipes.resolve(str(tmp_path / "own.yaml"), changes)
        assert str(refused.value) == f"{tmp_path / 'own.yaml'}: {SHAPES[text]}"


def test_lines_of_a_run_may_end_early_and_not_be_broken_before(tmp_path: Path) -> None:
    path, good = tmp_path / "metrics.jsonl", '{"step": 1, "split": "train", "loss": 1.5}\n'
    path.write_text(good + '{"step": 2, "spl')
    assert [row["step"] for row in record.rows(path)] == [1]
    for bad in ('{"step": 2, "spl', "", "[2]", '{"step": "2"}', '{"step": 2, "loss": "x"}', '{"step": 2, "step": 3}'):
        path.write_text(f"{good}{bad}\n{good}")
        with pytest.raises(Refusal, match=r"metrics.jsonl, line 2: .*; mend or drop it$"):
            record.rows(path)


@pytest.mark.parametrize(
    "said", ['{"step": 2}', '{"step": 2, "scores": {"exact": "x"}, "weights": 1, "operations": 1}']
)
def test_a_result_that_is_damaged_is_refused_by_key(said: str, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(recipes.resolve("reverse").text())
    (tmp_path / "result.json").write_text(said)
    with pytest.raises(Refusal, match=r"result.json is not whole: scores.*; train it again$"):
        table.row(tmp_path)


def test_a_module_of_ones_own_is_not_saved_as_a_model(tmp_path: Path) -> None:
    for layout in ("heedful", "hf", "onnx"):
        with pytest.raises(Refusal, match=r"^a Linear is no model of heedful's"):
            heedful.save(torch.nn.Linear(2, 2), tmp_path / "model", layout=layout)
    assert not list(tmp_path.iterdir())
