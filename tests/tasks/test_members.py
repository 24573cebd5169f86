"""Several models in one: each learns from its own share of every batch, and the mean of their chances answers."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import heedful
from heedful.errors import Refusal
from heedful.formats import native
from heedful.looking import look
from heedful.models import Members, attention_kinds
from heedful.models.ensemble import alone, in_member
from heedful.tasks.checks import checks
from heedful.training import run
from heedful.training.adapt.freeze_and_lora import Low, adapt, others, scales
from heedful.training.adapt.init_from import begin
from heedful.training.cost import operations_a_step
from heedful.training.loop import Loop
from heedful.training.prepare import prepare
from heedful.training.spec import recipes
from heedful.training.spec.training_spec import TrainingSpec
from heedful.training.trained_run import load_trained
from tests.answered import plain
from tests.tasks.encoders import folder
from tests.tasks.test_classify import CPU, ROWS, rows, spec

TINY = ("model.width=16", "model.depth=1", "model.heads=2", "data.tokenizer=words")
SMALL = {"vocab": 20, "width": 16, "depth": 2, "heads": 2, "length": 12, "classes": 3}


def model(members: int = 3, family: str = "bert", **numbers: Any) -> Members:
    torch.manual_seed(3)
    made = heedful.build(family, members=members, **{"output": "classes"} | SMALL | numbers).double()
    assert isinstance(made, Members)
    return made


@pytest.mark.parametrize("output", ["classes", "tags"])
@pytest.mark.parametrize("family", ["bert", "albert", "gpt", "llama"])
def test_the_mean_of_the_members_chances_answers(family: str, output: str) -> None:
    together, tokens = model(family=family, output=output).eval(), torch.randint(4, 20, (5, 9))
    said = torch.stack([one(tokens) for one in together.members])
    assert not torch.allclose(said[0], said[1])
    torch.testing.assert_close(together(tokens).softmax(-1), said.softmax(-1).mean(0), rtol=0, atol=1e-12)


def test_where_a_text_is_of_several_classes_each_chance_is_a_mean() -> None:
    together, tokens = model(multi_label=True).eval(), torch.randint(4, 20, (5, 9))
    said = torch.stack([one(tokens) for one in together.members])
    torch.testing.assert_close(together(tokens).sigmoid(), said.sigmoid().mean(0), rtol=0, atol=1e-12)


def test_one_member_is_the_model_itself() -> None:
    assert not isinstance(heedful.build("bert", output="classes", members=1, **SMALL), Members)


@given(st.integers(1, 9), st.integers(2, 4), st.integers(1, 3))
def test_while_they_learn_every_sample_is_read_by_one_member_in_turn(samples: int, members: int, copies: int) -> None:
    together, tokens = model(members).train(), torch.randint(4, 20, (samples, 7)).repeat(copies, 1)
    positions, segments = torch.arange(7).expand(len(tokens), 7), torch.randint(0, 2, (len(tokens), 7))
    said = together(tokens, positions, segments=segments, copies=copies)
    for at, one in enumerate(said):
        reader, own = together.members[at % samples % members], slice(at, at + 1)
        torch.testing.assert_close(one, reader(tokens[own], positions[own], segments=segments[own])[0])
    said[0].sum().backward()
    learning = [name for name, p in together.named_parameters() if p.grad is not None and p.grad.any()]
    assert learning and all(name.startswith("members.0.") for name in learning)


def test_a_member_begins_as_the_model_alone_would_and_no_two_alike() -> None:
    together = model()
    torch.manual_seed(3)
    single = heedful.build("bert", output="classes", **SMALL).double()
    first, second, _ = together.members
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), single.parameters(), strict=True))
    assert not torch.equal(first.inputs.table.weight, second.inputs.table.weight)


def test_the_laws_hold_for_all_of_them_and_every_layer_is_seen() -> None:
    together = model(members=2).float().eval()
    assert all(law.holds for law in checks(together))
    with look(together) as seen:
        together(torch.randint(4, 20, (2, 5)))
    assert len(seen.paths) == 4 and {path.split(".")[1] for path in seen.paths} == {"0", "1"}


def test_another_mechanism_is_put_into_each() -> None:
    other = attention_kinds.instead(model().float(), "linear")
    assert isinstance(other, Members) and len(other.members) == 3 and other.spec.mechanism == "linear"


# ---------------------------------------------------------------------- learning


def test_a_model_that_was_alone_is_the_beginning_of_each(tmp_path: Path) -> None:
    single = heedful.build("bert", output="classes", **SMALL)
    native.save(single, tmp_path / "one")
    together = model().float()
    assert begin(together, tmp_path / "one").anew == ()
    for member in together.members:
        assert all(torch.equal(a, b) for a, b in zip(member.parameters(), single.parameters(), strict=True))
    native.save(together, tmp_path / "three")
    assert begin(model(2).float(), tmp_path / "three").anew == ()  # the first two of them
    torch.manual_seed(5)
    again = heedful.build("bert", output="classes", **SMALL)
    assert begin(again, tmp_path / "three").anew == ()  # the first alone
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), single.parameters(), strict=True))


def test_a_path_names_the_part_of_every_member() -> None:
    together = model()
    assert others(together) == ["inputs", "encoder"]
    adapt(together, TrainingSpec(freeze=["inputs", "members.1", "encoder.blocks.0"]))
    learning = {name for name, p in together.named_parameters() if p.requires_grad}
    assert {name.split(".")[1] for name in learning} == {"0", "2"}
    assert not any(in_member(name).startswith(("inputs.", "encoder.blocks.0.")) for name in learning)
    with pytest.raises(Refusal, match=r"no 'decoder'; known: inputs, encoder, outputs, encoder\.blocks\.0, \.\.\."):
        adapt(together, TrainingSpec(freeze=["decoder"]))


def test_each_has_products_and_rates_as_it_would_have_alone() -> None:
    together = model()
    single = together.members[0]
    expected = [*scales(single, 0.5).values()] * 3
    assert [scales(together, 0.5)[p] for p in together.parameters()] == expected
    adapt(together, TrainingSpec.model_validate({"lora": {"rank": 2, "parts": ["project"]}}))
    assert [sum(isinstance(part, Low) for part in member.modules()) for member in together.members] == [2, 2, 2]


def test_they_learn_and_come_back_with_their_task(tmp_path: Path) -> None:
    given = spec(
        rows(tmp_path), *TINY, "model.members=3", "training.batch=6", "training.steps=12", "objective.consistency=1.0"
    )
    run.train(given, tmp_path / "out", False, CPU)
    learned, task = load_trained(tmp_path / "out")
    assert isinstance(learned, Members) and len(alone(learned)) == 3
    assert plain(task.predict(learned, ["the cat sat"])) in (["yes"], ["no"])
    report = (tmp_path / "out" / "report.html").read_text()
    assert all(f"members.{at}.encoder.blocks.0" in report for at in range(3))
    assert all(f"<dt>{who}</dt>" in report for who in ("all together", "member 0 alone", "member 2 alone"))


def test_members_can_begin_with_what_was_read_elsewhere(tmp_path: Path) -> None:
    given = spec(rows(tmp_path), f"start={folder(tmp_path / 'read', 'states')}", "model.members=2", "training.batch=2")
    ready = prepare(given, CPU)
    first, second = alone(ready.model)
    same = [torch.equal(a, b) for a, b in zip(first.inputs.parameters(), second.inputs.parameters(), strict=True)]
    assert all(same) and not torch.equal(*(weights(one.outputs) for one in (first, second)))


def weights(part: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in part.parameters() if p.dim() > 1])


def test_every_member_learns_however_a_batch_is_cut(tmp_path: Path) -> None:
    given = spec(rows(tmp_path, ROWS * 4), *TINY, "model.members=3", "training.batch=12", "training.accumulate=12")
    ready = prepare(given, CPU)
    before = copy.deepcopy(ready.model.state_dict())
    loop = Loop(ready.run, ready.task, ready.splits, ready.model, tmp_path / "run")
    loop.step(loop.portions.at(0))
    for at in range(3):
        name = f"members.{at}.outputs.pooler.matrix.weight"
        assert not torch.equal(before[name], ready.model.state_dict()[name])


def test_what_learning_costs_is_counted_once_for_every_sample(tmp_path: Path) -> None:
    costs = []
    for members in (1, 3):
        words = ("model.width=16", "model.depth=1", "training.batch=5", f"model.members={members}")
        ready = prepare(spec(rows(tmp_path, ROWS * 4), *words), CPU)
        ready.model.eval()
        costs.append(operations_a_step(Loop(ready.run, ready.task, ready.splits, ready.model, tmp_path / "run")))
    assert costs[0] == costs[1] > 0


# ---------------------------------------------------------------------- what they cannot


@pytest.mark.parametrize("output", ["states", "masked", "answer"])
def test_what_is_no_choice_among_classes_has_no_mean(output: str) -> None:
    with pytest.raises(Refusal, match=r"model\.members answer by classes or tags"):
        model(output=output)


@pytest.mark.parametrize("members", [0, 65])
def test_none_and_too_many_are_refused(members: int) -> None:
    with pytest.raises(Refusal, match="members"):
        heedful.build("bert", output="classes", members=members, **SMALL)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("training.batch=2",), "training.batch=2 has no sample for some of model.members=3"),
        (("training.batch=8", "training.tokens=99"), "training.tokens=99 leaves some of model.members=3 out"),
    ],
)
def test_what_would_leave_members_without_samples_is_refused(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    with pytest.raises(Refusal, match=re.escape(told)):
        prepare(spec(rows(tmp_path), "model.members=3", *words), CPU)


def test_who_is_asked_something_else_begins_with_the_first_alone(tmp_path: Path) -> None:
    run.train(
        spec(rows(tmp_path), *TINY, "model.members=3", "training.batch=6", "training.steps=2"),
        tmp_path / "a",
        False,
        CPU,
    )
    given = recipes.resolve("answer", ["data=toy", f"start={tmp_path / 'a'}", "data.too_long=cut"])
    ready = prepare(given, CPU)
    learned = alone(load_trained(tmp_path / "a")[0])[0]
    assert not isinstance(ready.model, Members)
    assert torch.equal(ready.model.inputs.table.weight, learned.inputs.table.weight)


def test_the_layout_of_others_has_no_place_for_them(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="members"):
        heedful.save(model().float(), tmp_path / "hf", layout="hf")


def test_they_are_one_graph_of_onnx(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    together = model(members=2).float().eval()
    heedful.save(together, tmp_path / "onnx", layout="onnx")
    tokens = torch.randint(4, 20, (3, 6))
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / "model.onnx")
    given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "token_type_ids": torch.zeros_like(tokens)}
    (said,) = session.run(None, {name: tensor.numpy() for name, tensor in given.items()})
    torch.testing.assert_close(torch.from_numpy(said), together(tokens), rtol=0, atol=1e-5)
