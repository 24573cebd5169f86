"""A compiled run is the same run, its batches of few shapes, each a graph of its own."""

from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.engines.training_engines import MOST
from heedful.training.record import rows
from tests.training.runs import assert_same, contents, loop_of, short, train


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes of the graphs that were captured; they are run as they are, since a CPU takes minutes to compile."""
    captured: list[Any] = []
    own = torch.compile

    def backend(graph: Any, examples: Any) -> Any:
        captured.append([tuple(one.shape) for one in examples if isinstance(one, torch.Tensor) and not one.is_leaf])
        assert all(isinstance(size, int) for one in examples if isinstance(one, torch.Tensor) for size in one.shape)
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda model, dynamic, options: own(model, dynamic=dynamic, backend=backend))
    torch.compiler.reset()
    return captured


@pytest.mark.parametrize("recipe", ["sets", "reverse"])
def test_a_compiled_run_learns_what_an_eager_one_learns(tmp_path: Path, recipe: str, graphs: list[Any]) -> None:
    changes = {"training__steps": 3, "training__evaluate_every": 3, "training__log_every": 1}
    eager = train(short(recipe, **changes), tmp_path / "eager")
    assert not graphs
    compiled = train(short(recipe, training__compile="true", **changes), tmp_path / "compiled")
    assert graphs
    assert compiled["scores"] == pytest.approx(eager["scores"], rel=1e-3)
    losses = [[row["loss"] for row in rows(tmp_path / name / "metrics.jsonl") if row["split"] == "train"]
              for name in ("eager", "compiled")]  # fmt: skip
    assert len(losses[0]) == 3 and losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_two_compiled_runs_are_one_whatever_shapes_came_first(tmp_path: Path, graphs: list[Any]) -> None:
    asked = {"training__tokens": 200, "data__samples": 60, "training__steps": 3, "model__depth": 1}
    run = short("translate", training__compile="true", **asked)
    train(run, tmp_path / "whole")
    many = len(graphs)
    assert 1 < many <= MOST
    train(run, tmp_path / "again")  # finds its graphs made, all of them
    assert_same(contents(tmp_path / "whole"), contents(tmp_path / "again"))


def test_few_shapes_are_compiled_for_an_epoch(tmp_path: Path, graphs: list[Any]) -> None:
    loop = loop_of(tmp_path, short("translate", data__samples=600, training__tokens=400, training__compile="true"))
    shapes = {
        tuple(tuple(tensor.shape) for tensor in loop.portions.at(step).batches[0].values())
        for step in range(loop.portions.plan.steps)
    }
    assert len(shapes) <= 8 < loop.portions.plan.steps
    for shape in shapes:
        assert len(set(shape)) == 1 and all(size & (size - 1) == 0 for size in shape[0])
