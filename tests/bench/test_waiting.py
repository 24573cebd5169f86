"""`heedful bench waiting`: what it calls waiting is the time in which a step has nothing to learn from."""

import time
from pathlib import Path
from typing import Any

import pytest

from heedful.bench import waiting_bench
from heedful.cli import main
from heedful.errors import Refusal
from heedful.training.loop import Loop
from heedful.training.microbatches import Portion, Portions
from tests.training.runs import loop_of, short


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_bench, "SECONDS", 0.3)


def test_the_wait_is_that_for_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = loop_of(tmp_path, short("reverse"))
    monkeypatch.setattr(Loop, "step", lambda self, batches: time.sleep(0.02))
    own = Portions.at

    def slow(self: Portions, step: int) -> Portion:
        time.sleep(0.01)
        return own(self, step)

    monkeypatch.setattr(Portions, "at", slow)
    case, base = waiting_bench.case("a slow set", loop, 2, lambda: None), waiting_bench.BASE
    assert case.name == "waiting, a slow set, on cpu, a batch"
    assert all(seconds > 0.01 for seconds in case.seconds[waiting_bench.BETWEEN])
    assert all(seconds > 0.02 for seconds in case.seconds[base])
    assert case.ratio(waiting_bench.AHEAD, base) < 0.5 * case.ratio(waiting_bench.BETWEEN, base)


def test_without_the_set_another_is_taken_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(name: str) -> Any:
        raise Refusal(f"data={name} is not here")

    monkeypatch.setattr(waiting_bench.download, "home", gone)
    monkeypatch.setattr(waiting_bench, "IMAGES", 60)
    with pytest.raises(SystemExit) as stop:
        main(["bench", "waiting", "--rounds", "1"])
    said = capsys.readouterr().out
    assert stop.value.code == 0
    assert said.startswith("waiting, invented sentences for want of Multi30k, on ") and waiting_bench.AHEAD in said
    assert "waiting, a folder of 60 images, on " in said
