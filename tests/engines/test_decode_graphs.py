"""Captured steps: what they do on a GPU is done here as it is called, and says the same as steps that are not."""

import gc
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

import heedful
from heedful.attention import Attention
from heedful.decoding import Decoding, captured_search, search
from heedful.decoding.generated_answer import Answer
from heedful.engines import decode_graphs, decode_kernel
from heedful.engines.decode_graphs import reach
from heedful.errors import Failure, Refusal
from heedful.models import build
from tests.decoding.test_continuing import KINDS, in_batch, speaker, strip
from tests.decoding.toys import sources, writer

WAYS: list[dict[str, Any]] = [
    {},
    {"temperature": 1.3, "top_k": 9, "top_p": 0.9},
    {"repetition_penalty": 1.5},
]


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_search, "check", lambda *asked: None)


def both(model: Any, source: Tensor, way: dict[str, Any], **more: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    decoding, batch = Decoding(max_new_tokens=21, **way), {"prompt": source}
    steps = decoding.but(steps="captured")
    return strip(search(model, batch, steps, **more)), strip(search(model, batch, decoding, **more))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_captured_steps_say_what_called_ones_say(kind: str, way: dict[str, Any]) -> None:
    model = speaker(2, **KINDS[kind])
    for prompts in ([[3, 4, 5, 6], [7], [9, 8]], [[3, 4], [7, 8]], [[5, 6], [4]]):  # a memory that was used before
        fast, slow = both(model, in_batch(prompts), way, seed=3, **({"best": 2} if "temperature" in way else {}))
        assert fast == slow


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_looks_no_farther_than_it_must(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_graphs, "LEAST", 4)  # so that it looks at 8, 16 and 28 columns
    reached: list[int] = []
    monkeypatch.setattr(decode_graphs, "reach", lambda *asked: reached.append(reach(*asked)) or reached[-1])
    fast, slow = both(speaker(2, **KINDS[kind], end=None), in_batch([[3, 4, 5, 6], [7], [9, 8]]), {})
    assert fast == slow
    assert sorted(set(reached)) == [8, 16, 28]


def test_a_step_is_made_once_for_prompts_of_like_length() -> None:
    model = speaker(2)
    with torch.no_grad():
        one = decode_graphs.step_of(model, 2, 64, False, False)
        assert decode_graphs.step_of(model, 2, 64, False, False) is one
        assert decode_graphs.step_of(model, 3, 64, False, False) is not one
    other = decode_graphs.step_of(model, 2, 64, False, False)
    model.to(torch.float32)  # elsewhere in memory, where a graph would not look
    assert decode_graphs.step_of(model, 2, 64, False, False) is not other


def test_a_step_goes_with_its_model() -> None:
    gc.collect()
    model, before = speaker(2), len(decode_graphs.made)
    both(model, torch.tensor([[3]]), {})
    assert len(decode_graphs.made) == before + 1
    del model
    gc.collect()
    assert len(decode_graphs.made) == before


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_what_was_read_and_written_before_is_forgotten(way: dict[str, Any]) -> None:
    model = speaker(2, end=None)
    for prompts in ([[3, 4, 5, 6, 7, 8], [9]], [[10], [11, 12]], [[9, 8], [7]]):  # one step for all of them
        fast, slow = both(model, in_batch(prompts), way)
        assert fast == slow
    assert len(decode_graphs.made[model][False][1].text) == 2


def test_weights_that_have_changed_since_are_the_ones_that_count() -> None:
    model, source = speaker(2), torch.tensor([[3, 4], [7, 8]])
    before = both(model, source, {})[0]
    with torch.no_grad():
        model.outputs.matrix.weight.copy_(speaker(5).outputs.matrix.weight)  # an odd number of rows, so a copy
        model.decoder.blocks[0].norm1.weight.mul_(-1)
    fast, slow = both(model, source, {})
    assert fast == slow != before


def test_tokens_behind_the_end_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_search, "PATIENCE", 1000)
    model = speaker(2, end=[2, 5, 9])
    for prompt in range(1, 16):
        fast, slow = both(model, torch.tensor([[prompt], [3]]), {})
        assert fast == slow


def test_whoever_waits_waits_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    take = decode_graphs.Step.__call__
    monkeypatch.setattr(decode_graphs.Step, "__call__", lambda *asked: calls.append(1) or take(*asked))
    model = speaker()
    with torch.no_grad():
        model.outputs.matrix.weight.zero_()  # all as likely: the first it is
    decoding = Decoding(max_new_tokens=40, steps="captured")
    for end, steps in ((0, captured_search.PATIENCE - 1), (5, 39)):
        model.spec = model.spec.model_copy(update={"end": end})
        [[answer], _] = search(model, {"prompt": torch.tensor([[3], [4]])}, decoding)
        assert answer == Answer((0,) * 40 * (end != 0), pytest.approx(answer.score), end == 0)
        assert len(calls) == steps
        calls.clear()


def test_scores_that_are_no_numbers_are_a_failure() -> None:
    model = speaker()
    with torch.no_grad():
        model.outputs.matrix.weight[5] = torch.nan
    for way in WAYS[:2]:
        with pytest.raises(Failure, match="not numbers"):
            search(model, {"prompt": torch.tensor([[3]])}, Decoding(max_new_tokens=9, steps="captured", **way))


def test_what_cannot_be_captured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(Refusal, match="steps='captured' captures the steps of a GPU, and the model lies on a CPU"):
        heedful.generate(speaker(), [3], 9, steps="captured")
    with pytest.raises(Refusal, match="the model lies on a CPU"):
        search(writer(), {"source": sources()}, Decoding(steps="compiled"))


@pytest.mark.parametrize("way", [None, captured_search.Way(None, 1.2)])
@pytest.mark.parametrize("kernel", [False, True])
def test_a_step_can_be_compiled_as_one_graph(
    way: captured_search.Way | None, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel:  # stands there, and leaves to torch what lies on a CPU
        monkeypatch.setattr(decode_kernel.DecodeKernel, "refuses", lambda self, model: "")
        monkeypatch.setattr(decode_kernel, "import_module", lambda name: None)
    torch.manual_seed(0)
    model: Any = build("llama", vocab=20, width=16, heads=2, depth=2, length=64, hidden=32).eval()
    one, two = decode_graphs.Step(model, 2, 64, False), decode_graphs.Step(model, 2, 64, False)
    how: Any = {"backend": "aot_eager", "dynamic": False, "fullgraph": True}
    assert [type(block.attention) is decode_kernel.DecodeAttention for block in one.model.decoder.blocks] == [
        kernel
    ] * 2
    assert all(type(block.attention) is Attention for block in model.decoder.blocks)
    two.scores, two.likeliest = torch.compile(two.plain, **how), torch.compile(two.greedy, **how)
    with torch.no_grad():
        for step in (one, two):
            step.begin(torch.tensor([[3, 4], [5, 6]]), None, None, way)
            step(2, way)
    assert one.text.tolist() == two.text.tolist()
    torch.testing.assert_close(one.gains, two.gains)
