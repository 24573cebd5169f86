"""A run that was stopped anywhere and goes on is, to the bit, the run that was never stopped."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from heedful.errors import Refusal
from heedful.formats import native
from heedful.safe import sealed_folders
from heedful.safe.json_and_tensors import read_tensors
from heedful.tasks.work import Work
from heedful.training import checkpoint, precision, run, run_folder
from heedful.training.loop import Loop
from heedful.training.pretraining_stages import settle
from heedful.training.record import Record, rows
from heedful.training.spec import recipes
from tests.training.runs import CPU, assert_same, contents, killed_at, loop_of, short, train

HARD = {"model__dropout": 0.2, "training__accumulate": 3, "training__average": 0.9, "objective__smoothing": 0.1}
RECURRENT = ("translate-rnn", "translate-rnn-attention")  # whose parts have dropout of their own
WITHOUT = {  # what a recipe's model and losses do not have
    "model__dropout": (*RECURRENT, "dvae", "glove", "lenet", "resnet", "word2vec"),
    "objective__smoothing": ("classify-several", "dino", "dvae", "glove", "in-context", "mae", "series", "word2vec"),
}
WORDS = {"data__merge_dropout": 0.2, "objective__consistency": 1.0}  # other sub-words and other batches in each epoch
MORE = {
    "word2vec": {"data__longest": 16},
    "classify-several": {"objective__consistency": 1.0},
    "glove": {"data__near": 9, "data__samples": 150},
    "summarise": {"training__tokens": 220},
    "chat-text": {"training__tokens": 220},
    "vit": {"data__augment": ["flip", "crop", "trivial", "erase", "mixup", "cutmix"]},
    "translate": WORDS | {"objective__guidance": 0.5},
    **dict.fromkeys(RECURRENT, WORDS | {"model__decoder__dropout": 0.2, "objective__name": "scheduled_sampling"}),
    "translate-multi30k": WORDS | {"training__average_last": 2},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run that was never stopped leaves behind."""
    out = tmp_path_factory.mktemp("whole") / "run"
    train(short("reverse", **HARD), out)
    return contents(out)


def killed(spec: Any, out: Path, owner: Any, name: str, call: int, resume: bool = False) -> None:
    with killed_at(owner, name, call):
        train(spec, out, resume)


def counted(spec: Any, out: Path) -> int:
    """Trains to the end, and says how many steps that took."""
    own, steps = Loop.step, [0]

    def step(*given: Any) -> Any:
        steps[0] += 1
        return own(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "step", step)
        train(spec, out)
    return steps[0]


@pytest.mark.parametrize("recipe", recipes.names())
def test_a_run_that_was_killed_goes_on_to_the_same_bits(tmp_path: Path, recipe: str) -> None:
    hard = {key: value for key, value in HARD.items() if recipe not in WITHOUT.get(key, ())}
    spec = short(recipe, training__steps=19, training__evaluate_every=8, **hard | MORE.get(recipe, {}))
    out = Path("run")  # by the same name in two places, for reports name the folders of teachers
    (tmp_path / "whole").mkdir(), (tmp_path / "cut").mkdir()
    with contextlib.chdir(tmp_path / "whole"):
        before = counted(spec, out) - spec.training.steps  # by what is trained first, such as a teacher
        plan = loop_of(tmp_path, settle(spec, out, lambda *first: None)).portions.plan
    with contextlib.chdir(tmp_path / "cut"):
        killed(spec, out, Loop, "step", before + 17)
        (place,) = checkpoint.all_of(out / "checkpoints")[-1:]
        train(spec, out, resume=True)
    assert place.name == "step-00000014"
    assert plan.epoch(14) == plan.epoch(13) and 14 % spec.training.log_every and 14 % spec.training.evaluate_every
    assert recipe == "series" or len({len(plan.at(step)) for step in range(plan.steps)}) > 1  # some are smaller
    assert "translate" not in recipe or plan.starts[1] != plan.starts[2] - plan.starts[1]  # and so are some epochs
    one, other = contents(tmp_path / "cut" / out), contents(tmp_path / "whole" / out)
    parts = {"model", "optimiser", "average", "best", "log"}
    assert {f"checkpoints/step-00000019/{part}.safetensors" for part in parts} < one.keys()
    assert {"metrics.jsonl", "model/model.safetensors", "result.json", "report.html", "run.yaml"} < one.keys()
    assert_same(one, other)


@pytest.mark.parametrize(
    "how",
    [
        {"training__optimiser": "sgd", "training__dtype": "bfloat16"},
        {"training__optimiser": "adafactor"},
        {"training__optimiser": "muon", "training__dtype": "float16"},
        {"training__optimiser": "adamw", "training__dtype": "float16"},
    ],
    ids=lambda how: " ".join(map(str, how.values())),
)
def test_every_optimiser_and_precision_goes_on_to_the_same_bits(
    tmp_path: Path, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "FIRST", 2.0**20)  # so that the first steps overflow and the scale comes down
    spec = short("reverse", training__evaluate_every=11, **HARD | how)
    killed(spec, tmp_path / "cut", Loop, "step", 17)
    kept = read_tensors(tmp_path / "cut" / "checkpoints" / "step-00000014" / "log.safetensors")
    assert ("scale" in kept) == (how.get("training__dtype") == "float16")
    assert kept.get("scale", 1) < 2.0**20
    train(spec, tmp_path / "cut", resume=True)
    train(spec, tmp_path / "whole")
    assert_same(contents(tmp_path / "cut"), contents(tmp_path / "whole"))


@pytest.mark.parametrize(
    "cuts",
    [
        [(Loop, "step", 1)],  # before anything is saved
        [(Loop, "step", 7)],  # just before the first is
        [(Loop, "step", 8)],  # just after
        [(Loop, "step", 17), (Loop, "step", 2), (Loop, "step", 8)],  # again and again
        [(Loop, "evaluate", 4)],
        [(Loop, "save", 2)],
        [(Work, "measure", 6)],  # in the last evaluation
        [(sealed_folders, "save_file", 8)],  # inside a checkpoint
        [(Path, "rename", 2)],  # before one is moved into place
        [(checkpoint, "remove_folder", 1)],  # before an old one is dropped
        [(Record, "_write", 3)],
        [(run, "report", 1)],  # when all is learned, tested and written but the report
        [(run, "report", 1), (native, "write_model", 1)],
        [(os, "replace", 4)],  # when only the result is missing: two files are cut back, a report is written
    ],
)
def test_it_does_not_matter_where_a_run_is_cut(tmp_path: Path, whole: dict[str, bytes], cuts: list[Any]) -> None:
    spec = short("reverse", **HARD)
    for number, (owner, name, call) in enumerate(cuts):
        killed(spec, tmp_path / "run", owner, name, call, resume=number > 0)
        assert not (tmp_path / "run" / "result.json").exists()
    train(spec, tmp_path / "run", resume=True)
    assert_same(contents(tmp_path / "run"), whole)


def test_a_line_that_was_cut_short_is_written_again(tmp_path: Path, whole: dict[str, bytes]) -> None:
    spec = short("reverse", **HARD)
    killed(spec, tmp_path / "run", Loop, "step", 17)
    told = tmp_path / "run" / "metrics.jsonl"
    told.write_bytes(told.read_bytes()[:-9])
    train(spec, tmp_path / "run", resume=True)
    assert_same(contents(tmp_path / "run"), whole)


def test_a_run_can_be_cut_while_it_cuts_back_its_metrics(tmp_path: Path, whole: dict[str, bytes]) -> None:
    spec = short("reverse", **HARD)
    killed(spec, tmp_path / "run", Loop, "step", 17)
    killed(spec, tmp_path / "run", Path, "write_text", 1, resume=True)
    killed(spec, tmp_path / "run", os, "replace", 1, resume=True)
    train(spec, tmp_path / "run", resume=True)
    assert_same(contents(tmp_path / "run"), whole)


def test_a_run_that_ends_early_goes_on_to_the_same_end(tmp_path: Path) -> None:
    spec = short("reverse", training__patience=2, training__save_every=4, training__rate=1e-9, **HARD)
    killed(spec, tmp_path / "cut", run, "report", 1)
    assert train(spec, tmp_path / "cut", resume=True)["step"] < 23
    train(spec, tmp_path / "whole")
    assert_same(contents(tmp_path / "cut"), contents(tmp_path / "whole"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of a finished run, which no test changes, and its result."""
    out = tmp_path_factory.mktemp("done") / "run"
    return out, train(short("reverse", training__steps=2), out)


def test_a_finished_run_is_left_as_it_is(done: tuple[Path, dict[str, Any]]) -> None:
    spec, (out, first) = short("reverse", training__steps=2), done
    before = contents(out)
    assert train(spec, out, resume=True) == first == json.loads(before["result.json"])
    with pytest.raises(Refusal, match="finished run; choose another --out"):
        train(spec, out)
    assert_same(contents(out), before)


def test_a_finished_run_is_asked_for_as_it_was_begun_too(done: tuple[Path, dict[str, Any]]) -> None:
    for other in (short("reverse", training__steps=3), short("sort", training__steps=2)):
        with pytest.raises(Refusal, match=r"was begun with .*choose another --out"):
            train(other, done[0], resume=True)
    with pytest.raises(Refusal, match="begun with start=, not x; leave start out, or choose"):  # `start=` is no change
        train(short("reverse", training__steps=2, start="x"), done[0], resume=True)
    with pytest.raises(Refusal, match="was begun by another recipe"):
        run.train(short("sort", training__steps=2), done[0], True, CPU, ["training.steps"])


def test_a_lock_that_a_killed_run_left_beside_its_result_is_cleared_and_that_of_a_living_one_is_not(
    done: tuple[Path, dict[str, Any]],
) -> None:
    spec, out = short("reverse", training__steps=2), done[0]
    before = contents(out)
    with run_folder.holding(out):
        train(spec, out, resume=True)
        left = contents(out)
    assert left.keys() - before.keys() == {".lock", ".holder.json"}
    for name in left.keys() - before.keys():
        (out / name).write_bytes(left[name])
    train(spec, out, resume=True)
    assert_same(contents(out), before)


def test_an_unfinished_run_is_not_begun_anew(tmp_path: Path) -> None:
    spec = short("reverse")
    killed(spec, tmp_path / "run", Loop, "step", 17)
    before = contents(tmp_path / "run")
    with pytest.raises(Refusal, match="unfinished run; go on with --resume"):
        train(spec, tmp_path / "run")
    assert_same(contents(tmp_path / "run"), before)


def test_a_run_goes_on_only_as_it_was_begun(tmp_path: Path) -> None:
    killed(short("reverse"), tmp_path / "run", Loop, "step", 17)
    with pytest.raises(Refusal, match=r"begun with training\.rate="):
        train(short("reverse", training__rate=0.5), tmp_path / "run", resume=True)


def test_a_run_goes_on_only_with_the_data_that_it_was_begun_with(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for at in range(60):
        (tmp_path / "photos" / f"class{at % 2}").mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        image.save(tmp_path / "photos" / f"class{at % 2}" / f"{at}.png")
    spec = short("vit", data=tmp_path / "photos", data__pixels=8)
    killed(spec, tmp_path / "run", Loop, "step", 17)
    for at in range(0, 20, 2):
        (tmp_path / "photos" / "class0" / f"{at}.png").unlink()
    said = r"^the data are others than those that .*run was begun with: mean was \[.*\] and is \[.*; put those back, or"
    with pytest.raises(Refusal, match=said):
        train(spec, tmp_path / "run", resume=True)


def test_data_with_more_tokens_than_a_run_was_begun_with_are_called_others(tmp_path: Path) -> None:
    own = tmp_path / "own.conll"
    own.write_text("".join(f"word{at}\tB-x\nword{at}\tO\n\n" for at in range(60)))
    begun = run.prepare(short("tag", data=own), CPU).run
    own.write_text("".join(f"word{at}\tB-x\nword{at}\tO\n\n" for at in range(90)))
    with pytest.raises(Refusal, match=r"^the data are others than those that .*run was begun with \(the tokenizer has"):
        run.prepare(begun, CPU, tmp_path / "run")


def test_where_a_run_goes_on_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killed(short("reverse"), tmp_path / "run", Loop, "step", 1)
    killed(short("reverse"), tmp_path / "run", Loop, "step", 17, resume=True)
    assert "nothing saved yet, starting at step 0" in capsys.readouterr().err
    train(short("reverse"), tmp_path / "run", resume=True)
    assert "going on at step 14" in capsys.readouterr().err


def test_the_time_of_a_run_goes_on_counting(tmp_path: Path) -> None:
    killed(short("reverse"), tmp_path / "run", Loop, "step", 17)
    timing = tmp_path / "run" / "timing.jsonl"
    timing.write_text('{"step": 10, "seconds": 1000.0, "samples_a_second": 1.0}\n', encoding="utf-8")
    train(short("reverse"), tmp_path / "run", resume=True)
    assert [row["step"] for row in rows(timing)] == [10, 15, 20, 23]
    assert all(row["seconds"] > 1000 for row in rows(timing)[1:])
