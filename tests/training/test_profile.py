"""A profile says where the time of a step goes, and changes nothing that is computed."""

import json
from pathlib import Path

import pytest
import torch

from heedful.training.loop import Loop
from heedful.training.profile import peak
from tests.training.runs import CPU, assert_same, contents, killed_at, loop_of, short, train

STAGES = {"data", "forward", "backward", "optimiser", "saving", "logging", "evaluation"}


def computed(out: Path) -> dict[str, bytes]:
    """What a run came to; the spec says whether it was profiled, and the report shows the spec."""
    return {name: data for name, data in contents(out).items() if name not in ("run.yaml", "report.html", "trace.json")}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("profiled") / "run"
    train(short("reverse", training__profile="true", model__dropout=0.2, training__accumulate=2), out)
    return out


def test_a_profile_changes_no_bit(tmp_path: Path, profiled: Path) -> None:
    train(short("reverse", model__dropout=0.2, training__accumulate=2), tmp_path / "run")
    assert_same(computed(profiled), computed(tmp_path / "run"))
    assert not (tmp_path / "run" / "trace.json").exists()


def test_the_trace_holds_a_few_steps_by_stage(profiled: Path) -> None:
    events = json.loads((profiled / "trace.json").read_text())["traceEvents"]
    counts = {name: sum(event.get("name") == name and event.get("ph") == "X" for event in events) for name in STAGES}
    assert counts["forward"] == counts["backward"] == 6  # two micro-batches in each of three steps
    assert counts["data"] == counts["optimiser"] == 3


def test_the_stages_are_told_with_speed_and_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(short("reverse", training__profile="true"), tmp_path / "run")
    said = capsys.readouterr().err
    lines = said[said.index("profile   ") :].splitlines()
    assert lines[0].startswith("profile   10 steps of ") and lines[0].endswith(
        " ms; " + str(tmp_path / "run/trace.json")
    )
    rows = [line.split() for line in lines[1:9]]
    assert {row[4] for row in rows} == STAGES | {"all"}
    assert sum(float(row[2]) for row in rows) == pytest.approx(100, abs=0.5)
    assert all(float(row[0]) >= 0 for row in rows)
    assert " samples/s and " in lines[9] and "% of the " in lines[9]
    share = float(lines[9].split("learning: ")[1].split(" %")[0])
    assert 0 < share < 100


def test_a_run_that_is_cut_while_it_is_traced_can_go_on(tmp_path: Path) -> None:
    spec = short("reverse", training__profile="true")
    with killed_at(Loop, "step", 12):
        train(spec, tmp_path / "cut")
    train(spec, tmp_path / "cut", resume=True)
    train(short("reverse"), tmp_path / "whole")
    assert_same(computed(tmp_path / "cut"), computed(tmp_path / "whole"))


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_run_that_is_too_short_says_so(tmp_path: Path, steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    train(short("reverse", training__profile="true", training__steps=steps), tmp_path / "run")
    assert "profile   the run was too short to be timed; set a larger training.steps" in capsys.readouterr().err
    assert (tmp_path / "run" / "trace.json").exists()


def test_the_peak_is_that_of_a_product() -> None:
    assert 1e8 < peak(torch.float32, CPU) < 1e14


def test_nothing_is_timed_that_was_not_asked_for(tmp_path: Path) -> None:
    assert loop_of(tmp_path, short("reverse")).stages.watch is None
