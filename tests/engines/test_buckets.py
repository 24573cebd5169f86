"""What CUDA graphs ask of a batch: filled up to round shapes, it has the same loss; on a CPU nothing changes at all."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.engines.buckets import LENGTHS, ROWS, fill_for_compiler, fill_for_graphs
from heedful.training.loop import Loop
from tests import judging
from tests.training.runs import assert_same, contents, first_samples, loop_of, short, train

PRECISE = {"training__dtype": "float64", "model__dropout": 0.0}
LOSSES = {
    "plain": ("reverse", {}),
    "smoothed": ("translate", {"smoothing": 0.1}),
    "consistent": ("translate", {"smoothing": 0.1, "consistency": 2.0}),
    "guided": ("translate", {"guidance": 1.5}),
    "all": ("translate", {"smoothing": 0.1, "consistency": 2.0, "guidance": 1.5}),
}


def judged(loop: Loop, batch: dict[str, Tensor], terms: dict[str, float]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    loop.model.zero_grad()
    total, count = judging.judged(loop.task, loop.model, batch, **terms)
    total.backward()
    return (
        total.detach(),
        count,
        {name: p.grad.clone() for name, p in loop.model.named_parameters() if p.grad is not None},
    )


MODELS = [{"model__position": "sine"}, {"model__bias": "alibi"}, {"model__order": "post"}]


@pytest.mark.parametrize(("kind", "words"), [*((kind, {}) for kind in LOSSES), *(("all", words) for words in MODELS)])
def test_a_filled_batch_has_the_same_loss_and_the_same_gradients(tmp_path: Path, kind: str, words: Any) -> None:
    recipe, asked = LOSSES[kind]
    guided = {"objective__guidance": 1} if "guidance" in asked else {}
    loop = loop_of(tmp_path, short(recipe, **PRECISE, **guided, **words))
    loop.model.train()
    batch, terms = loop.task.batch(first_samples(loop, 5)), asked
    total, count, slopes = judged(loop, batch, terms)
    for fill in (fill_for_graphs, fill_for_compiler):
        fuller = fill(batch, 10**6)
        assert all(len(fuller[name]) > len(tensor) for name, tensor in batch.items())
        other, counted, others = judged(loop, fuller, terms)
        assert count == counted
        torch.testing.assert_close(other, total, rtol=1e-10, atol=0)
        assert slopes.keys() == others.keys()
        for name, slope in slopes.items():
            torch.testing.assert_close(others[name], slope, rtol=1e-9, atol=1e-10)


SHAPES = st.lists(st.integers(1, 70), min_size=1, max_size=3)


@given(st.dictionaries(st.sampled_from(["source", "target", "guide"]), SHAPES, min_size=1), st.integers(1, 70))
@settings(max_examples=60, deadline=None)
def test_what_is_filled_up_is_round_holds_the_batch_and_is_zero_elsewhere(
    shapes: dict[str, list[int]], rows: int
) -> None:
    batch = {name: torch.ones(rows, *shape[1:], dtype=torch.long) for name, shape in shapes.items()}
    made = fill_for_graphs(batch, 10**6)
    assert made.keys() == batch.keys()
    for name, tensor in batch.items():
        full = made[name]
        assert len(full) % ROWS == 0 and len(full) - len(tensor) < ROWS
        assert all(size % LENGTHS == 0 for size in full.shape[1:])
        assert all(0 <= new - old < LENGTHS for new, old in zip(full.shape[1:], tensor.shape[1:], strict=True))
        assert full.sum() == tensor.sum() and torch.equal(full[tuple(map(slice, tensor.shape))], tensor)
        assert full.dtype == tensor.dtype


def test_few_shapes_come_of_many_batches(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("translate", data__samples=600, training__tokens=400))
    batches = (loop.task.batch(loop.portions.samples(step)) for step in range(loop.portions.plan.steps))
    shapes = {tuple(tensor.shape for tensor in fill_for_graphs(batch, 10**6).values()) for batch in batches}
    assert len(shapes) < loop.portions.plan.steps / 2


def test_on_a_cpu_graphs_change_nothing(tmp_path: Path) -> None:
    made = []
    for graphs in ("true", "false"):
        out = tmp_path / graphs
        train(short("translate", training__graphs=graphs, training__steps=4), out)
        files = contents(out)
        made.append({name: files[name] for name in files if name not in ("run.yaml", "report.html")})
    assert_same(*made)
    assert (tmp_path / "true" / "run.yaml").read_text().count("graphs: true") == 1


def test_no_batch_is_filled_beyond_what_the_model_takes() -> None:
    batch = {"source": torch.ones(3, 53, dtype=torch.long), "guide": torch.ones(3, 50, 53)}
    made = fill_for_graphs(batch, 54)
    assert made["source"].shape[1] == 54 and made["guide"].shape[1:] == (52, 54)
    assert fill_for_graphs(batch, 53)["source"].shape[1] == 53
