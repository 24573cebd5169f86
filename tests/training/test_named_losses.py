"""Several losses, each with a count of its own: logged apart, and the same step however it is cut."""

import dataclasses
import json
import re
from typing import ClassVar

import pytest
import torch

from heedful.errors import Refusal
from heedful.metrics.accuracy import Accuracy
from heedful.objectives.objective import Loss, Objective
from heedful.tasks.sets.set_classification import TASK
from heedful.training.loop import Loop
from tests.training.runs import CPU, loop_of, run, short


class Shades(torch.nn.Module):
    """A teacher that tells the class of an image by its shades."""

    def forward(self, images):
        return images.mean((2, 3))


TERMS = {
    "dino": ({}, {}, "koleo", 0.1),
    "dvae": ({}, {}, "token_use", 0.02),
    "vit": ({"model__distilled": True}, {"teacher": Shades()}, "distillation", 0.5),
    "classify": ({"objective__consistency": 2.0, "model__dropout": 0.2}, {}, "consistency", 2.0),
    "gpt-text": ({"objective__consistency": 1.5, "model__dropout": 0.2}, {}, "consistency", 1.5),
    "translate": ({"objective__consistency": 3.0, "model__dropout": 0.2}, {}, "consistency", 3.0),
}  # of a recipe: what is changed in it, and in its objective, the term beside its loss, and what that weighs
PRECISE = {"training__dtype": "float64", "training__clip": 0, "model__norm": "layer", "training__warmup": 0}


@dataclasses.dataclass(frozen=True)
class Both(Objective):
    """The class of a set, and beside it a loss for each of its members, of which sets have unlike many."""

    weight: float = 3.0

    @property
    def names(self):
        return ("classes", "members")

    def counts(self, batch, learned):
        return {"classes": torch.tensor(len(batch["answer"])), "members": batch["lengths"].sum()}

    def losses(self, model, batch, learned):
        counts = self.counts(batch, learned)
        logits = model(batch["vectors"], batch["lengths"])
        classes = torch.nn.functional.cross_entropy(logits, batch["answer"], reduction="sum")
        members = (logits.square().mean(-1) * batch["lengths"]).sum()
        return {"classes": Loss(classes, counts["classes"]), "members": Loss(members, counts["members"], self.weight)}


@pytest.fixture
def two_losses(monkeypatch):
    monkeypatch.setattr("heedful.tasks.TASKS.known", {"sets": dataclasses.replace(TASK, objective=Both())})


def moved(loop: Loop) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    portion = loop.portions.at(0)
    sums = [loop.task.losses(loop.model, batch) for batch in portion.batches]
    mean = loop.step(portion)
    each = loop.each
    by_hand = [sum(one[name].sum for one in sums) / sum(one[name].count for one in sums) for name in loop.names]
    torch.testing.assert_close(each, torch.stack(by_hand).detach())
    torch.testing.assert_close(mean, each[0] + 3 * each[1])
    return mean, each, torch.cat([p.detach().flatten() for p in loop.model.parameters()])


@pytest.mark.usefixtures("two_losses")
def test_a_step_in_micro_batches_is_the_step_of_the_whole_batch(tmp_path):
    found = []
    for cut in (1, 3):
        spec = short("sets", training__batch=12, training__accumulate=cut, training__optimiser="sgd", **PRECISE)
        found.append(moved(loop_of(tmp_path / str(cut), spec)))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("two_losses")
def test_each_loss_is_logged_by_its_name_and_a_killed_run_goes_on_with_what_was_summed(tmp_path):
    spec = short("sets", training__log_every=4, training__save_every=6, training__steps=8)
    run.train(spec, tmp_path / "whole", False, CPU)
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    logged = [row for row in rows if row["split"] == "train"]
    assert all(abs(row["loss"] - row["classes"] - 3 * row["members"]) < 1e-4 for row in logged) and len(logged) == 2
    loop = loop_of(tmp_path / "killed", spec)
    for step in range(6):
        loop.step(loop.portions.at(step))
        loop.progress.step = step + 1
    with loop.saver:
        loop.save()
        loop.saver.wait()
    again = loop_of(tmp_path / "killed", spec)
    again.restore(next((tmp_path / "killed" / "checkpoints").iterdir()))
    assert torch.equal(again.each, loop.each) and len(again.each) == 2 and again.each.all()


@pytest.mark.parametrize("recipe", TERMS)
def test_each_term_beside_a_loss_is_named_weighs_by_itself_and_has_a_gradient_of_its_own(recipe, tmp_path):
    changes, parts, term, weight = TERMS[recipe]
    loop = loop_of(tmp_path, short(recipe, **changes))
    objective = dataclasses.replace(loop.task.objective, **parts)
    torch.manual_seed(0)
    found = objective.losses(loop.model.train(), loop.portions.at(0).batches[0], loop.task.learned)
    assert tuple(found) == objective.names == ("loss", term)
    assert [one.weight for one in found.values()] == [0.5 if parts else 1.0, weight]
    found[term].sum.backward()
    assert any(p.grad is not None and p.grad.any() for p in loop.model.parameters())


@dataclasses.dataclass(frozen=True)
class Called(Both):
    """The two losses by names of their own."""

    called: tuple[str, ...] = ()

    @property
    def names(self):
        return self.called


@dataclasses.dataclass
class Scored(Accuracy):
    """The accuracy by a name of its own, which it does not say beforehand where it is quiet."""

    names: ClassVar[tuple[str, ...]] = ("step",)
    quiet: bool = False

    def __post_init__(self):
        self.names = () if self.quiet else self.names

    def compute(self):
        return {"step": super().compute()["accuracy"]}


@pytest.mark.parametrize(
    ("losses", "changes", "said"),
    [
        (
            ("step", "members"),
            {},
            "the loss 'step' would overwrite the field 'step' of the log; give it another name",
        ),
        (("classes", "rate"), {}, "the loss 'rate' would overwrite the field 'rate' of the log"),
        (("classes", "loss"), {}, "the loss 'loss' would overwrite the field 'loss' of the log"),
        (("classes", "classes"), {}, "the loss 'classes' would overwrite the field 'classes' of the log"),
        (
            ("classes", "span"),
            {"objective__span": 0.1},
            "another loss is called 'span' too, and a run logs one of them",
        ),
    ],
)
def test_a_loss_that_would_overwrite_a_field_of_the_log_is_refused(losses, changes, said, monkeypatch):
    task = dataclasses.replace(TASK, objective=Called(called=losses))
    monkeypatch.setattr("heedful.tasks.TASKS.known", {"sets": task})
    with pytest.raises(Refusal, match=re.escape(said)):
        run.prepare(short("sets", **changes), CPU)


def test_a_score_that_would_overwrite_a_field_of_the_log_is_refused_as_soon_as_its_name_is_known(monkeypatch, tmp_path):
    said = "the score 'step' would overwrite the field 'step' of the log; give it another name"
    for quiet in (False, True):
        task = dataclasses.replace(TASK, metrics=(*TASK.metrics, Scored(quiet=quiet)))
        monkeypatch.setattr("heedful.tasks.TASKS.known", {"sets": task})
        with pytest.raises(Refusal, match=said):
            run.train(short("sets"), tmp_path, False, CPU) if quiet else run.prepare(short("sets"), CPU)
    twice = dataclasses.replace(TASK, metrics=(*TASK.metrics, *TASK.metrics))
    monkeypatch.setattr("heedful.tasks.TASKS.known", {"sets": twice})
    with pytest.raises(Refusal, match=r"another score is called '.*' too, and a run logs one of them; give it another"):
        run.prepare(short("sets"), CPU)
