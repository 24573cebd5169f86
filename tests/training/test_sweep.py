"""A sweep: every combination of values, side by side, in one table with mean and spread; stopped, it goes on."""

import json
from pathlib import Path

import pytest

from heedful.errors import Refusal
from heedful.training import sweep
from heedful.training.sweep import Sweep, Trial, table_of, trials, values_of

TINY = ["data=toy", "data.samples=60", "data.held_out=16", "training.steps=4", "training.evaluate_every=2"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1..3", ["1", "2", "3"]),
        ("a,b,a", ["a", "b"]),
        ("0.1", ["0.1"]),
        ("[flip,turn]", ["[flip,turn]"]),
        ("window(size=2,wide=3),softmax", ["window(size=2,wide=3)", "softmax"]),
    ],
)
def test_values_are_parted_at_commas_and_spans_are_counted_out(text, values):
    assert values_of(text) == values


def test_each_combination_is_a_run_and_one_that_cannot_be_is_refused_before_the_first(tmp_path):
    shared, made = trials("reverse", [*TINY, "training.rate=0.1,0.2", "seed=1..3"], tmp_path)
    assert shared == TINY and len(made) == 6 and len({one.folder for one in made}) == 6
    assert {one.setting for one in made} == {("training.rate=0.1",), ("training.rate=0.2",)}
    with pytest.raises(Refusal, match=r"training\.rate='x'|training\.rate"):
        trials("reverse", [*TINY, "training.rate=0.1,x"], tmp_path)
    with pytest.raises(Refusal, match="nothing is varied"):
        trials("reverse", TINY, tmp_path)


def left(folder: Path, score: float, done: bool = True) -> None:
    """What a run leaves that a sweep reads."""
    folder.mkdir(parents=True)
    rows = [{"step": step, "split": "valid", "exact": score} for step in (2, 4)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = {"step": 4, "scores": {"exact": score}, "weights": 1, "operations": 1.0}
    if done:
        (folder / "result.json").write_text(json.dumps(result))


def test_the_table_has_mean_and_spread_of_each_setting_the_best_first(tmp_path):
    _, made = trials("reverse", ["training.rate=0.1,0.2", "seed=1,2"], tmp_path)
    for one, score in zip(made, (0.2, 0.4, 0.8, 0.6), strict=True):
        left(one.folder, score)
    assert table_of(made, "exact")[1] == [
        ("rate=0.2", "2 of 2", "0.7000 ± 0.1414"),
        ("rate=0.1", "2 of 2", "0.3000 ± 0.1414"),
    ]


class Told:
    """A process that hears signals."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def send_signal(self, number: int) -> None:
        self.heard.append(number)


def test_what_is_behind_the_middle_of_the_others_is_stopped_where_that_is_asked_and_the_best_is_not(tmp_path):
    _, made = trials("reverse", ["seed=1..3"], tmp_path)
    for one, score in zip(made, (0.1, 0.5, 0.6), strict=True):
        left(one.folder, score, done=False)
        one.process = Told()  # type: ignore[assignment]
    Sweep("reverse", [], made, "cpu", 3).stop_behind(made)
    assert not any(one.is_behind for one in made)
    Sweep("reverse", [], made, "cpu", 3, patience=2).stop_behind(made)
    assert [one.is_behind for one in made] == [True, False, False] and len(made[0].process.heard) == 1  # type: ignore


def test_runs_are_trained_in_processes_and_a_second_sweep_leaves_what_is_finished(tmp_path):
    shared, made = trials("reverse", [*TINY, "seed=1,2"], tmp_path)
    said: list[str] = []
    Sweep("reverse", shared, made, "cpu", 2, said=said.append).run()
    assert all(one.is_finished for one in made) and any(line.startswith("2/2  seed=") for line in said)
    before = [(one.folder / "result.json").stat().st_mtime_ns for one in made]
    Sweep("reverse", shared, made, "cpu", 2, said=said.append).run()
    assert before == [(one.folder / "result.json").stat().st_mtime_ns for one in made]


def test_a_run_that_failed_is_told_with_its_last_line(tmp_path):
    one = Trial(("seed=1",), tmp_path / "run", tmp_path / "run.txt")
    one.log.write_text("some\nheedful: it broke\n")
    said: list[str] = []
    Sweep("reverse", [], [one], "cpu", 1, said=said.append).tell(one)
    assert one.fault == "heedful: it broke" and said == ["0/1  run  heedful: it broke"]


def test_a_span_of_too_many_values_is_refused():
    with pytest.raises(Refusal, match="more than 1,000"):
        sweep.values_of("1..100000")
