"""What a run tells while it learns."""

import json
import re
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from heedful.tasks import TASKS
from heedful.training import record
from tests.training.runs import loop_of, short, train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("told") / "run"
    train(short("reverse"), out)
    return out


def test_metrics_are_only_what_is_computed(run: Path) -> None:
    told = [(row["step"], row["split"], set(row) - {"step", "split"}) for row in record.rows(run / "metrics.jsonl")]
    learned = [(step, "train", {"loss", "rate"}) for step in (5, 10, 15, 20, 23)]
    scored = [(step, "valid", {"exact", "tokens"}) for step in (4, 8, 12, 16, 20, 23)]
    assert sorted(told[:-1], key=str) == sorted(learned + scored, key=str)
    assert told[-1] == (23, "test", {"exact", "tokens"})
    assert [step for step, _, _ in told] == sorted(step for step, _, _ in told)


def test_times_stand_in_a_file_of_their_own(run: Path) -> None:
    told = record.rows(run / "timing.jsonl")
    assert [row["step"] for row in told] == [5, 10, 15, 20, 23]
    assert all(row.keys() == {"step", "seconds", "samples_a_second", "device"} for row in told)
    assert 0 < told[0]["seconds"] < told[-1]["seconds"] and all(row["samples_a_second"] > 0 for row in told)


def test_tensorboard_is_told_the_same(run: Path) -> None:
    board = EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    assert set(board.Tags()["scalars"]) == {"train/loss", "train/rate"} | {
        f"{split}/{name}" for split in ("valid", "test") for name in ("exact", "tokens")
    }
    losses = {row["step"]: row["loss"] for row in record.rows(run / "metrics.jsonl") if row["split"] == "train"}
    assert {event.step: event.value for event in board.Scalars("train/loss")} == pytest.approx(losses)


def test_a_run_that_nobody_watches_tells_plain_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(short("reverse", training__steps=5, training__batch=10**8), tmp_path / "run")
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("batches   1 an epoch of all 60 samples, ") for line in lines) == 1
    assert sum(line.startswith("step 5/5  loss ") for line in lines) == 1
    assert lines[-1] == f"report    {tmp_path / 'run' / 'report.html'}"  # whole, however narrow the terminal
    assert not any("\x1b" in line or "\r" in line for line in lines)


def test_a_translation_shows_samples_at_every_evaluation_and_says_how_much_of_its_batches_is_padding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = short("translate", training__steps=8)
    train(spec, tmp_path / "run")
    lines = capsys.readouterr().err.splitlines()
    plan = loop_of(tmp_path, spec).portions.plan
    share = f"{100 * plan.padding:.1f} % padding"
    assert f"batches   {plan.steps} an epoch of at most 220 tokens a side, {share}" in lines
    shown = [line.split(maxsplit=1) for line in lines if re.match(" +(source|reference|written)  ", line)]
    assert [name for name, *_ in shown] == ["source", "reference", "written"] * 2 * 2  # two samples at steps 4 and 8
    valid = [(one.texts.source, one.texts.target) for one in TASKS[spec.task].open(spec.data, spec.seed)[1].valid]
    assert {(source[1], reference[1]) for source, reference in zip(shown[::3], shown[1::3], strict=True)} <= set(valid)
    board = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    board.Reload()
    assert [event.step for event in board.Tensors("samples/text_summary")] == [4, 8]
    assert all(f"valid/{name}" in board.Tags()["scalars"] for name in ("bleu", "chrf", "perplexity"))


def lines_of(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_what_came_after_a_step_is_cut_back_and_the_test_too(tmp_path: Path) -> None:
    kept = [{"step": 5, "split": "train"}, {"step": 10, "split": "valid"}]
    cut = [{"step": 10, "split": "test"}, {"step": 11, "split": "train"}]
    (tmp_path / "metrics.jsonl").write_text(lines_of(*kept, *cut) + '{"step": 12, "sp')
    assert record.cut_back(tmp_path / "metrics.jsonl", 10) == kept
    assert (tmp_path / "metrics.jsonl").read_text() == lines_of(*kept)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_run_that_told_nothing_yet_has_an_empty_file(tmp_path: Path) -> None:
    assert record.cut_back(tmp_path / "metrics.jsonl", 0) == []
    assert (tmp_path / "metrics.jsonl").read_text() == ""


def test_a_line_whose_end_is_missing_is_kept_where_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(lines_of({"step": 5}).rstrip("\n"))
    record.cut_back(tmp_path / "metrics.jsonl", 5)
    assert (tmp_path / "metrics.jsonl").read_text() == lines_of({"step": 5})
