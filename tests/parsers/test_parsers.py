"""Whatever a file or a key holds, it is read or refused with a line: by seeded damage at every door, and by hand."""

from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful import models
from heedful.errors import Refusal
from heedful.models import part_tables
from heedful.safe import plain_data
from heedful.tasks import TASKS
from heedful.training import record, table
from heedful.training.out_of_memory import check_batch
from heedful.training.spec import recipes
from tests.parsers.attack import DOORS, Attack

COUNT = {"pictures": 100, "data": 200}  # damaged inputs, where it is not 30


@pytest.mark.parametrize("door", DOORS)
def test_what_is_damaged_is_read_or_refused_with_a_line(door: str, tmp_path: Path) -> None:
    attack = Attack(door, tmp_path / door, 0)
    assert attack.go_on(COUNT.get(door, 30)) == []
    assert 0 < attack.refused < attack.count


@pytest.mark.parametrize(
    "scalar", ["!!bool x", '!!int ""', "!!float x", "!!timestamp x", "!!binary é", "!!set x", "<<"]
)
def test_a_tag_that_a_value_belies_is_no_yaml(scalar: str) -> None:
    with pytest.raises(plain_data.yaml.YAMLError):
        plain_data.yaml_of(f"a: {scalar}")
    with pytest.raises(Refusal, match=r"^training.steps=.* does not fit: it should be a whole number$"):
        recipes.resolve("reverse", [f"training.steps={scalar}"])


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3", "a: {b: 1, 'b': 2}", "- {yes: 1, true: 2}"])
def test_no_key_stands_twice_in_yaml(text: str) -> None:
    with pytest.raises(plain_data.Twice, match="stands there twice"):
        plain_data.yaml_of(text)
    with pytest.raises(Refusal, match=r"'model=.*' cannot be read: key 'width' stands there twice"):
        recipes.resolve("reverse", ["model={width: 8, width: 16}"])


@pytest.mark.parametrize("change", ["training={3: 4}", "model={true: 4}", "data={2.5: x}", "training.lora={3: 4}"])
def test_a_key_that_is_no_word_is_refused_as_one(change: str) -> None:
    with pytest.raises(Refusal, match=r"^[\w.]+: the key (3|True|2\.5) is no word; leave it out$"):
        recipes.resolve("reverse", [change])


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


ABSURD = [
    *("seed=" + "9" * 23, "training.steps=1e30", "training.steps=" + "1" * 20, "training.batch=10000000000"),
    *("training.save_every=" + "9" * 20, "training.accumulate=" + "9" * 12, "training.tokens=" + "9" * 14),
    *("data.longest=" + "9" * 23, "data.shortest=" + "9" * 15, "data.samples=100000000", "decoding.top_k=" + "9" * 12),
    *("decoding.max_new_tokens=" + "9" * 12, "training.warmup=" + "9" * 12, "training.lora={rank: " + "9" * 12 + "}"),
    "decoding.max_new_tokens=999999999",
]


@pytest.mark.parametrize("change", ABSURD)
def test_an_absurd_number_is_refused_where_it_is_said(change: str) -> None:
    with pytest.raises(Refusal, match=r"does not fit: it should be (less than|a whole number)"):
        recipes.resolve("reverse", [change])


MADE = {
    "reverse": "pairs",
    "sort": "pairs",
    "clouds": "sets",
    "waves": "series",
    "listops": "sequences",
    "maps": "in-context",
}


@pytest.mark.parametrize("name", MADE)
def test_samples_that_no_memory_holds_are_refused_before_the_first_is_made(name: str) -> None:
    reader: Any = TASKS[MADE[name]].reader(name)
    data = reader(name=name, samples=10_000_000, longest=9_999_999)
    with pytest.raises(Refusal, match=r"^data.samples=10000000 .* would take \d+ MB, which is more than 4096 MB"):
        data.read(1)


@pytest.mark.parametrize("length", [2**31, 99999999999999, 10**30])
def test_no_model_takes_more_positions_than_kernels_count(length: int) -> None:
    with pytest.raises(Refusal, match=r"^model.length=\d+ does not fit: it should be less than 2147483648$"):
        models.spec("gpt", vocab=9, length=length)


@pytest.mark.parametrize("change", ["training.batch=100000000", "training.tokens=900000000"])
def test_a_batch_that_no_memory_holds_is_refused_with_what_it_would_take(change: str) -> None:
    run = recipes.resolve("reverse", [change])
    spec = models.spec("gpt", vocab=9, width=4096, heads=8, depth=48)
    with pytest.raises(Refusal, match=r"would take .* GiB for the states of one step and there are .* GiB; set"):
        check_batch(run, spec, [1 << 12] * 100_000)
    check_batch(run, spec, [1 << 12] * 10)  # no more is read than there is


WORDS = {
    "mechanism": (*part_tables.MECHANISMS, *part_tables.MASKS, *part_tables.PAIRS),
    "stack": tuple(part_tables.STACKS),
    "position": (*part_tables.POSITIONS, *part_tables.ROTARY),
}


@pytest.mark.parametrize("key", WORDS)
def test_a_spec_of_a_writer_whose_attention_cannot_write_is_refused_when_it_is_asked(key: str) -> None:
    tokens, refused = torch.ones(1, 3, dtype=torch.long), []
    for word in WORDS[key]:
        try:
            numbers = {"vocab": 9, "width": 8, "heads": 2, "depth": 1, "length": 16, "tied": False, key: word}
            models.build("transformer", **numbers)(tokens, tokens)
        except Refusal as refusal:
            refused.append(str(refusal))
    assert 0 < len(refused) < len(WORDS[key])
    assert all("; " in said for said in refused)


def test_every_stack_of_a_spec_is_tried_and_bounded() -> None:
    with pytest.raises(Refusal, match=r"^a width of 8 cannot be shared out among 3 heads; choose heads"):
        models.spec("bart", vocab=9, width=8, heads=2, decoder_heads=3)
    with pytest.raises(Refusal, match=r"^the model cannot be built: .*; choose other numbers for it$"):
        models.build("forecaster", channels=10**30)
    for family in ("swin", "resnet"):
        with pytest.raises(Refusal, match=r"^model.depths.0=2000000000 does not fit: it should be .* 1000$"):
            models.spec(family, channels=3, classes=2, depths=[2_000_000_000, 1])
