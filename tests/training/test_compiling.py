"""A compiled run is the same run."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from heedful.training.record import rows
from tests.training.runs import short, train


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graphs that were captured; they are run as they are, since making code of them takes minutes on a CPU."""
    captured: list[Any] = []
    own = nn.Module.compile

    def backend(graph: Any, examples: Any) -> Any:
        captured.append(graph)
        return graph.forward

    monkeypatch.setattr(nn.Module, "compile", lambda self: own(self, backend=backend))
    torch.compiler.reset()
    return captured


@pytest.mark.filterwarnings("ignore:a compiled model is run eagerly while it is looked at")
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
