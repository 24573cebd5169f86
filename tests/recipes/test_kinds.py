"""Any recipe takes any kind of attention and of pool: it learns with it, and its report is written."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heedful.errors import Refusal
from heedful.models import attention_kinds
from heedful.training import run
from heedful.training.spec import recipes

FEW = ["data=toy", "data.samples=40", "data.held_out=8", "training.steps=1", "training.batch=8"]
OWN = ("isab", "poolingformer", "lazyformer", "luna", "star", "bp", "etc")


@pytest.mark.parametrize("recipe", ["vit", "listops", "sets"])
@pytest.mark.parametrize("kind", OWN)
def test_who_looks_from_or_at_nodes_of_its_own_is_told_of_in_a_report(recipe: str, kind: str, tmp_path: Path) -> None:
    known = attention_kinds.kind_named(kind)
    spec = recipes.resolve(recipe, [*FEW, f"{known.key}={known.word()}"])
    run.train(spec, tmp_path / "run", False, torch.device("cpu"))
    assert (tmp_path / "run" / "report.html").exists()


def test_a_query_that_is_learned_is_counted_in_what_a_run_costs(tmp_path: Path) -> None:
    spec = recipes.resolve("vit", [*FEW, "model.pool=attention"])
    assert run.train(spec, tmp_path / "run", False, torch.device("cpu"))["operations"] > 0


def test_texts_in_one_row_may_see_one_another_where_a_kind_cannot_keep_them_apart(tmp_path: Path) -> None:
    words = [*FEW, "model.mechanism=linear"]
    with pytest.raises(Refusal, match=r"linear cannot keep texts in one row apart; .* with data\.apart=false$"):
        run.train(recipes.resolve("gpt-text", words), tmp_path / "apart", False, torch.device("cpu"))
    spec = recipes.resolve("gpt-text", [*words, "data.apart=false"])
    run.train(spec, tmp_path / "run", False, torch.device("cpu"))
    _, task = run.load_trained(tmp_path / "run")
    crops = task.reopen(spec.data, spec.seed).train[:2]
    batch = task.batch(crops)
    assert "documents" not in batch and (batch["answer"] == 0).any()  # a new text's first sign is foreseen by nobody
    assert "documents" in replace(task, learned=replace(task.learned, apart=True)).batch(crops)


def test_a_model_of_texts_is_scored_with_a_kind_that_cannot_keep_them_apart(tmp_path: Path) -> None:
    run.train(recipes.resolve("gpt-text", FEW), tmp_path / "run", False, torch.device("cpu"))
    model, task = run.load_trained(tmp_path / "run")
    other = attention_kinds.instead(model, "linear")
    with pytest.raises(ValueError, match=r"cannot keep texts in one row apart; .* with data\.apart=false$"):
        task.score(other, run.reopen_run(tmp_path / "run", task, [], "test")[1])
    judge, together = run.reopen_run(tmp_path / "run", task, ["data.apart=false"], "test")
    assert judge.score(other, together) != judge.score(model, together)
    assert task.learned.apart and not judge.learned.apart, "the task itself is as the model was trained"
