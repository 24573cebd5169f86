"""`heedful bench generate`: the contenders are one model, and write as much as each other."""

import gc
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.bench import generate_bench
from heedful.cli import main
from heedful.decoding import captured_search
from heedful.errors import Failure

SMALL: dict[str, Any] = {"vocab": 300, "width": 64, "heads": 4, "depth": 2, "length": 128, "end": None}


@pytest.fixture(autouse=True)
def of_small_size(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"small": {"family": "gpt", **SMALL}, "other": {"family": "llama", "groups": 2, "hidden": 96, **SMALL}}
    for name, value in {"SIZES": sizes, "NEW": 6, "NEW_BY_GPU": 6}.items():
        monkeypatch.setattr(generate_bench, name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gc, "collect", lambda: 0)


def test_a_table_and_every_round_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["bench", "generate", "--rounds", "2", "--json", str(tmp_path / "found.json")])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "time relative to transformers generate" in out
    assert out.count("100.0% of its tokens those of the first") == 3
    [case] = json.loads((tmp_path / "found.json").read_text())["cases"]
    assert list(case["contenders"]) == ["heedful", "heedful, weights=float16", "transformers generate"]


@pytest.mark.parametrize("name", ["small", "other"])
def test_what_runs_on_a_gpu_writes_the_same_there_and_here(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_search, "check", lambda *asked: None)
    torch.manual_seed(0)
    ours = generate_bench.model(name, on_gpu=False)
    prompts, other = generate_bench.prompts(ours, 3), generate_bench.in_transformers(ours)
    runs = generate_bench.by_gpu(ours, other, prompts)
    expected = runs.pop("transformers generate")()
    assert {"heedful, steps=captured", "heedful"} < set(runs)
    for way, run in runs.items():
        assert run() == expected or "sampled" in way


def test_contenders_that_write_less_are_not_compared() -> None:
    with pytest.raises(Failure, match=r"lazy wrote \[2\] tokens and not 6; nothing can be compared"):
        generate_bench.compare("a case", {"lazy": lambda: [[1, 2]]}, 1, 6)
