"""A step: the mean over what counts, however it is cut; clipped, smoothed, in any precision, on its own dice."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedful.data.collate import to
from heedful.models.text.transformer import PAD
from heedful.tasks.work import Work
from heedful.training.loop import Loop
from heedful.training.schedule import rate
from heedful.training.training_step import seed_step
from tests.judging import judged
from tests.training.runs import CPU, Silent, first_samples, loop_of, short

PRECISE = {"training__dtype": "float64", "training__average": 0}


def weights(loop: Loop) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in loop.model.state_dict().items()}


def gap(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest difference between weights."""
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def gradients(loop: Loop, samples: list[Any]) -> tuple[dict[str, Tensor], Tensor]:
    """What the optimiser is handed in a step, and the loss."""
    handed: dict[str, Tensor] = {}

    def keep(*_: Any) -> None:
        handed.update({name: p.grad.clone() for name, p in loop.model.named_parameters() if p.grad is not None})

    loop.optimiser.register_step_pre_hook(keep)
    return handed, loop.step(loop.portions.of(samples))


def norm(tensors: dict[str, Tensor]) -> float:
    return float(torch.stack([tensor.norm() for tensor in tensors.values()]).norm())


# ---------------------------------------------------------------------- the mean, however it is cut


@pytest.mark.parametrize("recipe", ["reverse", "series", "sets", "translate"])
@pytest.mark.parametrize("count", [8, 7, 5, 3])
def test_four_micro_batches_make_the_same_step_as_one(tmp_path: Path, recipe: str, count: int) -> None:
    whole = loop_of(tmp_path, short(recipe, training__accumulate=1, **PRECISE))
    parts = loop_of(tmp_path, short(recipe, training__accumulate=4, **PRECISE))
    samples = first_samples(whole, count)
    for _ in range(3):
        loss = whole.step(whole.portions.of(samples))
        torch.testing.assert_close(parts.step(parts.portions.of(samples)), loss, rtol=1e-6, atol=0)
    assert gap(weights(whole), weights(parts)) < 1e-10
    assert gap(weights(whole), weights(loop_of(tmp_path, whole.run))) > 1e-3  # they moved


def test_a_micro_batch_takes_its_share_of_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = loop_of(tmp_path, short("reverse", training__accumulate=4))
    sizes, batch = [], Work.batch
    monkeypatch.setattr(Work, "batch", lambda task, samples: (sizes.append(len(samples)), batch(task, samples))[1])
    loop.step(loop.portions.of(first_samples(loop, 10)))
    assert sizes == [3, 3, 3, 1]


def test_a_step_is_torchs_own_on_the_mean_over_what_is_no_padding(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("reverse", objective__smoothing=0.1, training__clip=0.5, **PRECISE))
    model = copy.deepcopy(loop.model)
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.98), foreach=False)
    for step in range(6):
        samples = [loop.splits.train[at] for at in loop.portions.plan.at(step)]
        batch = loop.task.batch(samples)
        logits, answer = model(batch["source"], batch["target"]), batch["answer"]
        loss = cross_entropy(logits[answer != PAD], answer[answer != PAD], label_smoothing=0.1)
        for group in optimiser.param_groups:
            group["lr"] = rate(loop.training, step)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()
        torch.testing.assert_close(
            loop.step(loop.portions.of(samples)), loss.detach(), rtol=1e-6, atol=0, check_dtype=False
        )
        loop.progress.step += 1
    assert gap(weights(loop), model.state_dict()) < 1e-6


def test_the_optimiser_is_handed_the_gradient_of_the_mean(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("reverse", training__clip=0, training__accumulate=3))
    model, samples = copy.deepcopy(loop.model), first_samples(loop, 7)
    total, count = loop.task.loss(model, loop.task.batch(samples))
    (total / count).backward()
    handed, _ = gradients(loop, samples)
    assert handed.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(handed[name], parameter.grad, rtol=1e-4, atol=1e-6)


# ---------------------------------------------------------------------- a task's sum and count


@pytest.mark.parametrize("recipe", ["reverse", "sort", "sets", "series", "translate"])
def test_a_task_gives_the_sum_over_its_samples_and_how_many_losses_there_are(tmp_path: Path, recipe: str) -> None:
    loop = loop_of(tmp_path, short(recipe))
    loop.model.eval()
    samples = first_samples(loop, 9)
    assert recipe == "series" or len({loop.task.length(sample) for sample in samples}) > 1  # some are padded
    total, count = loop.task.loss(loop.model, loop.task.batch(samples))
    alone = [loop.task.loss(loop.model, loop.task.batch([sample])) for sample in samples]
    torch.testing.assert_close(total, torch.stack([loss for loss, _ in alone]).sum(), rtol=1e-5, atol=0)
    assert count == sum(int(one) for _, one in alone)


def test_padding_is_not_counted(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, short("reverse"))
    samples = first_samples(loop, 9)
    _, count = loop.task.loss(loop.model, loop.task.batch(samples))
    assert count == sum(len(sample.target) + 1 for sample in samples)  # every token and the end


@pytest.mark.parametrize(("recipe", "answered"), [("reverse", "pairs"), ("sets", "sets")])
def test_label_smoothing_is_torchs(tmp_path: Path, recipe: str, answered: str) -> None:
    loop = loop_of(tmp_path, short(recipe))
    loop.model.eval()
    batch = loop.task.batch(first_samples(loop, 9))
    inputs = [batch[name] for name in (("source", "target") if recipe == "reverse" else ("vectors", "lengths"))]
    logits, answer = loop.model(*inputs).flatten(0, -2), batch["answer"].flatten()
    there = answer != PAD if recipe == "reverse" else torch.ones_like(answer, dtype=torch.bool)
    logarithms = logits[there].log_softmax(-1)
    hit, even = logarithms.gather(1, answer[there, None])[:, 0], logarithms.mean(-1)
    total, _ = judged(loop.task, loop.model, batch, smoothing=0.3)
    torch.testing.assert_close(total, -(0.7 * hit + 0.3 * even).sum(), rtol=1e-5, atol=0)
    torch.testing.assert_close(
        total, cross_entropy(logits[there], answer[there], reduction="sum", label_smoothing=0.3), rtol=1e-5, atol=0
    )


def test_the_loop_smooths_as_much_as_it_was_told(tmp_path: Path) -> None:
    sharp, smooth = (loop_of(tmp_path, short("reverse", objective__smoothing=share)) for share in (0.0, 0.3))
    samples = first_samples(sharp, 9)
    total, count = judged(smooth.task, smooth.model.train(), smooth.task.batch(samples), smoothing=0.3)
    expected = float(total.detach() / count)
    assert float(smooth.step(smooth.portions.of(samples))) == pytest.approx(expected, rel=1e-5)
    assert float(sharp.step(sharp.portions.of(samples))) != pytest.approx(expected, rel=1e-3)


# ---------------------------------------------------------------------- clipping


def test_a_long_gradient_is_cut_to_the_longest_allowed_and_keeps_its_direction(tmp_path: Path) -> None:
    free, cut = (loop_of(tmp_path, short("reverse", training__clip=longest)) for longest in (0, 0.01))
    samples = first_samples(free, 7)
    (raw, _), (clipped, _) = gradients(free, samples), gradients(cut, samples)
    assert norm(raw) > 1
    assert norm(clipped) == pytest.approx(0.01, rel=1e-3)
    for name, gradient in raw.items():
        torch.testing.assert_close(clipped[name], gradient * 0.01 / norm(raw), rtol=1e-3, atol=1e-9)


def test_a_gradient_that_is_short_enough_is_left_as_it_is(tmp_path: Path) -> None:
    free, wide = (loop_of(tmp_path, short("reverse", training__clip=longest)) for longest in (0, 1e6))
    samples = first_samples(free, 7)
    (raw, _), (clipped, _) = gradients(free, samples), gradients(wide, samples)
    assert all(torch.equal(raw[name], clipped[name]) for name in raw)


# ---------------------------------------------------------------------- dice


def stepped(tmp_path: Path, **changes: Any) -> tuple[dict[str, Tensor], list[float]]:
    loop, record = loop_of(tmp_path, short("reverse", training__steps=4, **changes)), Silent()
    loop.train(record)
    return weights(loop), [line[2] for line in record.lines if line[0] == "learned"]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_same_seed_gives_the_same_bits_and_another_does_not(tmp_path: Path, dropout: float) -> None:
    torch.manual_seed(5)
    one, losses = stepped(tmp_path / "1", model__dropout=dropout, seed=1)
    torch.manual_seed(6)  # what was drawn before a run does not matter
    same, again = stepped(tmp_path / "2", model__dropout=dropout, seed=1)
    other, _ = stepped(tmp_path / "3", model__dropout=dropout, seed=2)
    assert gap(one, same) == 0 and losses == again
    assert set(one) == set(other)
    assert gap({"t": one["encoder.norm.weight"]}, {"t": other["encoder.norm.weight"]}) > 0


def test_every_step_and_micro_batch_throws_its_own_dice() -> None:
    def drawn(*where: int) -> float:
        seed_step(*where)
        return float(torch.rand(()))

    places = [(1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 0, 0), (11, 0, 0), (1, 10, 0), (1, 0, 0, 1)]
    assert len({drawn(*place) for place in places}) == len(places)
    assert drawn(1, 3, 2) == drawn(1, 3, 2)


def test_a_step_draws_the_same_dropout_whatever_came_before(tmp_path: Path) -> None:
    one, other = (loop_of(tmp_path, short("reverse", model__dropout=0.5)) for _ in range(2))
    one.progress.step = other.progress.step = 3
    torch.rand(17)
    assert torch.equal(
        one.step(one.portions.of(first_samples(one, 7))), other.step(other.portions.of(first_samples(other, 7)))
    )


# ---------------------------------------------------------------------- precision and compiling


@pytest.mark.parametrize("recipe", ["reverse", "series", "sets"])
def test_bfloat16_learns(tmp_path: Path, recipe: str) -> None:
    loop = loop_of(tmp_path, short(recipe, training__dtype="bfloat16", training__rate=0.005))
    kinds = set()
    loop.model.get_submodule("outputs").register_forward_hook(lambda module, given, out: kinds.add(out.dtype))
    samples = first_samples(loop, 20)
    losses = [float(loop.step(loop.portions.of(samples))) for _ in range(25)]
    assert kinds == {torch.bfloat16}
    assert losses[-1] < 0.8 * losses[0]
    assert {p.dtype for p in loop.model.parameters()} == {torch.float32}  # only the products are of low precision


def test_auto_is_float32_on_a_cpu(tmp_path: Path) -> None:
    some = loop_of(tmp_path, short("reverse"))
    portion = some.portions.of(first_samples(some, 7))
    auto, single, low = (
        loop_of(tmp_path, short("reverse", training__dtype=dtype)).step(portion)
        for dtype in ("auto", "float32", "bfloat16")
    )
    assert torch.equal(auto, single) and not torch.equal(auto, low)


@pytest.mark.parametrize("recipe", ["reverse", "series", "sets", "translate"])
def test_the_loss_of_a_float64_model_is_not_rounded(tmp_path: Path, recipe: str) -> None:
    loop = loop_of(tmp_path, short(recipe, training__dtype="float64"))
    total, _ = loop.task.loss(loop.model, loop.task.batch(first_samples(loop, 5)))
    assert total.dtype == torch.float64


@pytest.mark.parametrize("recipe", ["reverse", "series", "sets"])
def test_float64_learns_in_float64(tmp_path: Path, recipe: str) -> None:
    loop = loop_of(tmp_path, short(recipe, training__dtype="float64", training__rate=0.005))
    samples = first_samples(loop, 20)
    losses = [float(loop.step(loop.portions.of(samples))) for _ in range(25)]
    assert losses[-1] < 0.8 * losses[0]
    state = loop.optimiser.state_dict()["state"].values()
    assert {p.dtype for p in loop.model.parameters()} == {torch.float64}
    assert {tensors["exp_avg"].dtype for tensors in state} == {torch.float64}


def test_a_batch_goes_to_the_device_as_a_whole() -> None:
    moved = to({"a": torch.zeros(2), "b": torch.ones(3)}, CPU)
    assert moved.keys() == {"a", "b"} and all(tensor.device == CPU for tensor in moved.values())
