"""Loggers by name: what each is told of a run, of one that goes on, and of one that was stopped."""

import csv
import json
import math
import sys
import types
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import Failure, Refusal
from heedful.training import record
from heedful.training.callbacks import LOGGERS, Callback
from heedful.training.loggers.csv_table import CsvTable
from heedful.training.loggers.mlflow_runs import MlflowRuns
from heedful.training.loggers.weights_and_biases import WeightsAndBiases
from heedful.training.record import Record
from heedful.training.spec import recipes
from tests.training.runs import short, train

SPEC = {"task": "sets", "model": {"width": 8, "heads": 2}, "start": None}


def told(logger: Callback, finished: bool = True) -> None:
    """What a short run tells a logger."""
    logger.on_begin(SPEC)
    logger.on_log(5, {"loss": 0.5, "rate": 0.1, "samples_a_second": 90.0})
    logger.on_evaluate(5, "valid", {"accuracy": 0.75})
    if finished:
        logger.on_evaluate(9, "test", {"accuracy": 0.5})
        logger.on_end({"step": 9, "scores": {"accuracy": 0.5}})
    logger.on_close(finished)


def rows(path: Path) -> list[list[str]]:
    return [*csv.reader(path.read_text(encoding="utf-8").splitlines())]


def test_a_run_writes_the_table_that_it_names_and_no_other_logger(tmp_path: Path) -> None:
    train(short("sets", training__loggers="[csv]"), tmp_path / "run")
    table = rows(tmp_path / "run" / "metrics.csv")
    wanted = record.rows(tmp_path / "run" / "metrics.jsonl")
    assert table[0] == ["step", "split", "name", "value"] and not (tmp_path / "run" / "tensorboard").exists()
    numbers: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for step, split, name, value in table[1:]:
        numbers[int(step), split][name] = float(value)
    assert all(one.pop("samples_a_second") > 0 for (_, split), one in numbers.items() if split == "train")
    assert [*numbers.items()] == [
        ((row["step"], row["split"]), {key: value for key, value in row.items() if key not in ("step", "split")})
        for row in wanted
    ]


def test_a_table_of_a_run_that_goes_on_tells_nothing_twice(tmp_path: Path) -> None:
    told(CsvTable(tmp_path))
    told(CsvTable(tmp_path, step=4))
    first = rows(tmp_path / "metrics.csv")
    again = CsvTable(tmp_path, step=5)
    assert rows(tmp_path / "metrics.csv") == [row for row in first if row[1] != "test"] and again.step == 5
    (tmp_path / "metrics.csv").write_text("step,split,name,value\nfive,train,loss,1\n")
    with pytest.raises(Refusal, match=r"metrics\.csv cannot be read: .*; remove it"):
        CsvTable(tmp_path, step=5)


def test_a_logger_hears_that_a_run_was_stopped(tmp_path: Path) -> None:
    heard: list[bool] = []

    class Closing(Callback):
        def on_close(self, finished: bool) -> None:
            heard.append(finished)

    with Record(tmp_path, 9, 0, callbacks=[Closing()]):
        pass
    with pytest.raises(KeyboardInterrupt), Record(tmp_path, 9, 0, callbacks=[Closing()]):
        raise KeyboardInterrupt
    assert heard == [True, False]


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_logger_whose_package_is_not_there_is_refused_before_the_run_begins(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.training.callbacks.find_spec", lambda package: None)
    with pytest.raises(Refusal, match=rf"names {name}, which is not installed; pip install 'heedful\[{name}\]'"):
        train(short("sets", training__loggers=f"[csv, {name}]"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_logger_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="unknown logger 'tensorbord'; did you mean 'tensorboard'"):
        train(recipes.resolve("sets", ["data=toy", "training.loggers=[tensorbord]"]), tmp_path / "run")
    assert [*LOGGERS][:4] == ["tensorboard", "csv", "wandb", "mlflow"]


class Wandb(types.ModuleType):
    """As much of wandb's API as the logger calls: `init` gives a run with `log`, `summary` and `finish`."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.calls: list[tuple[str, Any]] = []
        self.summary: dict[str, float] = {}

    def init(self, **given: Any) -> "Wandb":
        self.calls.append(("init", given))
        return self

    def log(self, values: dict[str, float], step: int) -> None:
        self.calls.append(("log", (step, values)))

    def finish(self, exit_code: int) -> None:
        self.calls.append(("finish", exit_code))


def test_weights_and_biases_hear_of_one_run_however_often_it_goes_on(tmp_path: Path, monkeypatch) -> None:
    wandb = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    told(WeightsAndBiases(tmp_path), finished=False)
    told(WeightsAndBiases(tmp_path, step=5))
    begun = [given for call, given in wandb.calls if call == "init"]
    assert begun[0]["id"] == begun[1]["id"] and len(begun[0]["id"]) == 16 and begun[0]["config"] == SPEC
    assert [given for call, given in wandb.calls if call == "finish"] == [1, 0]
    assert ("log", (5, {"valid/accuracy": 0.75})) in wandb.calls and wandb.summary == {"test/accuracy": 0.5}


def test_mlflow_hears_of_one_run_in_an_experiment_of_ours(tmp_path: Path, monkeypatch) -> None:
    calls: list[tuple[str, Any]] = []

    class Client:
        """As much of mlflow's client as the logger calls."""

        def get_experiment_by_name(self, name: str) -> None:
            assert name == "heedful"

        def create_experiment(self, name: str) -> str:
            return "1"

        def create_run(self, experiment: str, run_name: str) -> Any:
            calls.append(("create", run_name))
            return types.SimpleNamespace(info=types.SimpleNamespace(run_id="abc"))

        def __getattr__(self, name: str) -> Any:
            return lambda *given, **more: calls.append((name, (*given, *more.values())))

    modules = types.ModuleType("mlflow"), types.ModuleType("mlflow.entities")
    modules[0].MlflowClient, modules[1].Param = Client, lambda key, value: (key, value)  # type: ignore[attr-defined]
    for module in modules:
        monkeypatch.setitem(sys.modules, module.__name__, module)
    told(MlflowRuns(tmp_path), finished=False)
    told(MlflowRuns(tmp_path, step=5))
    assert [call for call in calls if call[0] == "create"] == [("create", tmp_path.name)]
    params = [("task", "sets"), ("model.width", "8"), ("model.heads", "2")]
    assert [given for name, given in calls if name == "log_batch"] == [("abc", params)]
    assert ("log_metric", ("abc", "valid/accuracy", 0.75, 5)) in calls
    assert [given[1] for name, given in calls if name == "set_terminated"] == ["KILLED", "FINISHED"]


def test_a_service_that_cannot_be_begun_with_is_named_in_one_line(tmp_path: Path, monkeypatch) -> None:
    def unreachable(**_: Any) -> None:
        raise ConnectionError("no route to host\nand more")

    wandb = Wandb()
    monkeypatch.setattr(wandb, "init", unreachable)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setattr("heedful.training.callbacks.find_spec", lambda package: package)
    with pytest.raises(Failure, match=r"^wandb cannot begin: no route to host; mend that, or leave it out"):
        train(short("sets", training__loggers="[wandb]"), tmp_path / "run")


def test_a_run_may_go_on_with_other_loggers(tmp_path: Path) -> None:
    train(short("sets"), tmp_path / "run")
    spec = short("sets", training__loggers="[csv]")
    (tmp_path / "run" / "result.json").unlink()
    train(spec, tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "metrics.csv").exists()
    assert math.isfinite(json.loads((tmp_path / "run" / "result.json").read_text())["scores"]["accuracy"])
