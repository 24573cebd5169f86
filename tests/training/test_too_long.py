"""What is longer than the model is named by file and line before the first step, or left out where that was asked."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from heedful.data.toys.invented_language import sentences
from heedful.errors import Refusal
from heedful.training import run
from heedful.training.loop import Loop
from tests.training.runs import CPU, killed_at, short, train

LONG = "The dog runs and the cat sleeps " * 12
PHRASES = sentences(90, 5)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """Three splits of two files each, none of whose lines is too long."""
    changes: dict[str, Any] = {"model__length": 60, "data__tokenizer": "bpe(size=400)"}
    for split, some in (("train", PHRASES[:60]), ("valid", PHRASES[60:70]), ("test", PHRASES[70:])):
        for side in ("source", "target"):
            path = tmp_path / f"{split}.{side}"
            path.write_text("".join(f"{getattr(one, side)}\n" for one in some), encoding="utf-8")
            changes[f"data__{split}__{side}"] = path
    return changes


def lengthen(path: Path, number: int) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[number - 1] = LONG + lines[number - 1]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def refused(**changes: Any) -> str:
    with pytest.raises(Refusal) as refusal:
        run.prepare(short("translate", **changes), CPU)
    return str(refusal.value)


def test_files_in_which_nothing_is_too_long_are_taken_whole(files: dict[str, Any]) -> None:
    ready = run.prepare(short("translate", **files), CPU)
    assert [len(part) for part in (ready.splits.train, ready.splits.valid, ready.splits.test)] == [60, 10, 20]


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_the_file_and_the_line_of_the_longer_side_are_named(files: dict[str, Any], split: str, side: str) -> None:
    path = files[f"data__{split}__{side}"]
    lengthen(path, 7)
    said = refused(**files)
    assert said.startswith(f"{path}, line 7: ") and " long and the model takes 60; set model.length=" in said
    (length,) = map(int, re.findall(r"set model\.length=(\d+)", said))
    ready = run.prepare(short("translate", **(files | {"model__length": length})), CPU)
    samples = [*ready.splits.train, *ready.splits.valid, *ready.splits.test]
    assert max(map(ready.task.length, samples)) == length  # what it says is enough


def test_what_it_says_is_enough_where_several_are_too_long(files: dict[str, Any]) -> None:
    lengthen(files["data__train__source"], 3)
    lengthen(files["data__test__source"], 5)
    lengthen(files["data__test__source"], 5)
    (length,) = map(int, re.findall(r"set model\.length=(\d+)", refused(**files)))
    run.prepare(short("translate", **(files | {"model__length": length})), CPU)


def test_a_line_of_one_file_with_tabs_is_named_too(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    lines = [f"{one.source}\t{one.target}" for one in PHRASES]
    path.write_text("".join(f"{LONG * (at == 8)}{line}\n" for at, line in enumerate(lines)), encoding="utf-8")
    assert refused(data=path, model__length=60).startswith(f"{path}, line 9: ")


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_what_is_too_long_to_learn_from_can_be_left_out_and_the_others_stay_as_they_are(
    files: dict[str, Any], dropout: float
) -> None:
    whole = run.prepare(short("translate", **(files | {"model__length": 200})), CPU)
    for number in (1, 30, 60):
        lengthen(files["data__train__source"], number)
    with pytest.warns(UserWarning, match=r"^3 of 60 samples to learn from are longer than model\.length=60$"):
        ready = run.prepare(short("translate", data__too_long="drop", data__merge_dropout=dropout, **files), CPU)
    texts = [(one.texts.source, one.texts.target) for one in whole.splits.train]
    kept = [texts[at] for at in range(60) if at + 1 not in (1, 30, 60)]
    assert [(one.texts.source, one.texts.target) for one in ready.splits.train] == kept
    loop = Loop(ready.run, ready.task, ready.splits, ready.model, Path())
    learned = [sample for step in range(loop.portions.plan.steps) for sample in loop.portions.samples(step)]
    assert sorted((one.texts.source, one.texts.target) for one in learned) == sorted(kept)
    for one in learned:  # and each is still itself
        both = ready.task.tokenizer.decode_all([list(map(int, ids)) for ids in (one.source, one.target)])
        assert both == [one.texts.source, one.texts.target]


@pytest.mark.parametrize("split", ["valid", "test"])
def test_what_is_chosen_or_tested_by_is_never_left_out(files: dict[str, Any], split: str) -> None:
    path = files[f"data__{split}__source"]
    lengthen(path, 2)
    said = refused(data__too_long="drop", **files)
    assert said.startswith(f"{path}, line 2: ")
    assert "data.too_long=drop" not in said  # that was asked for already, and does not help


def test_where_all_is_too_long_it_is_not_left_out(files: dict[str, Any]) -> None:
    said = refused(data__too_long="drop", **(files | {"model__length": 3}))
    assert re.match(r".+\.(source|target), line \d+: \d+ long and the model takes 3; set model\.length=", said)
    assert "data.too_long=drop" not in said


def test_nothing_is_written_before_it_is_known(files: dict[str, Any], tmp_path: Path) -> None:
    lengthen(files["data__test__target"], 3)
    with pytest.raises(Refusal):
        train(short("translate", **files), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    files["model__length"] = 200
    with warnings.catch_warnings(), killed_at(Loop, "step", 1):
        train(short("translate", **files), tmp_path / "run")
    assert (tmp_path / "run" / "run.yaml").is_file()


@pytest.mark.parametrize("recipe", ["reverse", "sets"])
def test_what_was_made_here_has_no_line(recipe: str) -> None:
    with pytest.raises(Refusal, match=r"^a sample: \d+ long and the model takes 3; set model\.length=\d+"):
        run.prepare(short(recipe, model__length=3), CPU)
