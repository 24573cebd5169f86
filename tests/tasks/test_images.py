"""Images as a task: what a step learns from is a pure function, mixed answers count as they should."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import cross_entropy, one_hot

import heedful
from heedful import models
from heedful.data.images import pixels_of
from heedful.data.readers.labelled_images import Shapes
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.objectives.architecture_search import SearchLearned
from heedful.pipelines.image_preprocessing import ImageClasses, ImageLearned
from heedful.pipelines.pipeline import unheard
from heedful.tasks.vision.architecture_search import TASK as SEARCH
from heedful.tasks.vision.image_classification import TASK
from heedful.tasks.work import Work
from heedful.training.distributed.ranks import Ranks
from tests.answered import plain
from tests.judging import judged

WORDS = ["flip", "crop(padding=2)", "trivial", "erase", "mixup", "cutmix"]


def opened(augment: list[str] = WORDS, **more: object) -> tuple[Work, list]:
    data = Shapes(samples=40, held_out=8, pixels=[8, 12], augment=augment, **more)
    task, splits = TASK.open(data, 7)
    return task, list(splits.train)


def model_for(task: Work) -> torch.nn.Module:
    torch.manual_seed(0)
    return heedful.build("vit", **task.facts(), patch=4, width=16, heads=2, depth=1, hidden=16)


class Larger(torch.nn.Module):
    """A teacher that sees images four times over."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.model(images.repeat(1, 1, 2, 2)[..., :16, :16])


def other(labels: list[str], size: tuple[int, ...]) -> Work:
    return Work(TASK, ImageClasses.unscaled(labels, size))


class Rank(Ranks):
    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


@pytest.mark.parametrize("size", [1, 2, 3])
def test_many_processes_learn_from_the_very_images_of_one(size):
    task, samples = opened()
    fresh = task.augmented(samples[:12], 4)
    whole, share = task.learned.augment(task.batch(fresh))
    for rank in range(size):
        own, counts = Rank(rank, size).share(fresh)
        part, of_part = task.learned.augment(task.batch(own))
        assert counts == 1
        torch.testing.assert_close(part, whole[rank::size], rtol=0, atol=1e-6)
        assert torch.equal(of_part, share[rank::size])


def test_an_image_is_mixed_with_its_neighbour_as_that_is_varied_itself():
    task, samples = opened()
    batch = task.batch(task.augmented(samples[:12], 4))
    for name in ("images", "answer", "dice"):
        assert torch.equal(batch[f"other_{name}"], batch[name].roll(1, 0)), name


def test_an_image_is_another_in_every_epoch_and_the_same_in_each():
    task, samples = opened()
    one, two, again = (task.learned.augment(task.batch(task.augmented(samples[:9], epoch)))[0] for epoch in (0, 1, 0))
    assert torch.equal(one, again) and not torch.equal(one, two)
    plain = task.learned.augment(task.batch(samples[:9]))
    assert plain[1] is None and torch.equal(plain[0], torch.from_numpy(pixels_of(samples[:9])).float() / 255)
    unvaried, its = opened([])
    assert unvaried.augmented(its, 3) is its


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("words", [["mixup"], ["cutmix"], ["mixup", "cutmix"]])
def test_the_loss_of_mixed_images_is_that_of_mixed_answers(words, smoothing):
    task, samples = opened(words)
    model, batch = model_for(task), task.batch(task.augmented(samples[:10], 0))
    images, share = task.learned.augment(batch)
    first, second = (one_hot(batch[name], len(task.learned.labels)).float() for name in ("answer", "other_answer"))
    mixed = share[:, None] * first + (1 - share[:, None]) * second
    wanted = cross_entropy(model(images), mixed, reduction="sum", label_smoothing=smoothing)
    loss, count = judged(task, model, batch, smoothing=smoothing)
    torch.testing.assert_close(loss, wanted)
    assert int(count) == 10


def test_autocast_moves_no_pixel():
    task, samples = opened()
    batch = task.batch(task.augmented(samples[:8], 0))
    with torch.autocast("cpu", torch.bfloat16):
        low = task.learned.augment(batch)[0]
    assert torch.equal(low, task.learned.augment(batch)[0]) and low.dtype == torch.float32


def test_files_are_answered_as_the_pictures_in_them(tmp_path):
    task, samples = opened()
    model = model_for(task).eval()
    paths = []
    for at, one in enumerate(samples[:5]):
        Image.fromarray(one.pixels.transpose(1, 2, 0)).save(tmp_path / f"{at}.png")
        paths.append(str(tmp_path / f"{at}.png"))
    wanted = [said.name for said in task.pipeline.results(model, samples[:5], task.learned, unheard)]
    assert plain(task.predict(model, paths)) == wanted
    assert plain(task.predict(model, [task.as_input(one) for one in samples[:5]])) == wanted
    with pytest.raises(Refusal, match=r"input 2: .*no\.png cannot be read: it does not exist"):
        plain(task.predict(model, [paths[0], str(tmp_path / "no.png")]))


def test_what_is_looked_at_is_shown_over_the_image(tmp_path):
    task, samples = opened()
    model = model_for(task).eval()
    seen = task.look(model, task.as_input(samples[0]))
    assert [one.path for one in seen.maps] == ["encoder.blocks.0.attention"]
    assert seen.maps[0].rows[:3] == ("class", "0,0", "0,1")
    rollout, found, layer = seen.sections
    assert set(found.weights[0][1].flatten().tolist()) <= {0.0, 1.0}
    assert rollout.image.shape == (*samples[0].pixels.shape[1:], 3) and len(layer.weights) == 2
    assert layer.weights[0][1].shape == (2, 3)
    torch.testing.assert_close(layer.weights[1][1].flatten(), seen.maps[0].weights[1, 0, 1:])


def test_a_task_is_read_as_it_was_written(tmp_path):
    task, _ = opened()
    task.write(tmp_path)
    state = heedful.formats.native.read_json(tmp_path / "task.json")
    state.pop("task")
    again = TASK.read(Path(tmp_path), state)
    assert (again.learned.labels, again.learned.size) == (task.learned.labels, task.learned.size)
    assert again.facts() == task.facts()


def test_pixels_are_brought_to_one_scale():
    task, samples = opened([])
    model = model_for(task)
    scaled = model.inputs.scale(torch.from_numpy(pixels_of(samples)).float() / 255)
    torch.testing.assert_close(scaled.mean((0, 2, 3)), torch.zeros(3), rtol=0, atol=1e-4)
    torch.testing.assert_close(scaled.std((0, 2, 3)), torch.ones(3), rtol=0, atol=1e-2)
    assert np.isclose(task.learned.mean[0], np.mean([one.pixels[0] for one in samples]) / 255)


def test_half_of_a_taught_models_loss_is_what_its_teacher_says():
    task, samples = opened(["flip", "mixup"])
    teacher = heedful.build("lenet", **task.facts() | {"high": 16, "wide": 16}).eval()
    student = heedful.build("vit", **task.facts(), patch=4, width=16, heads=2, depth=1, distilled=True)
    large = Larger(teacher)
    task = replace(task, chosen=replace(task.objective, teacher=large))
    batch = task.batch(task.augmented(samples[:6], 0))
    images, share = task.learned.augment(batch)
    own, other = student.answers(images)
    said = large(images).argmax(-1)
    first, second = (cross_entropy(own, batch[name], reduction="none") for name in ("answer", "other_answer"))
    wanted = (share * first + (1 - share) * second + cross_entropy(other, said, reduction="none")) / 2
    torch.testing.assert_close(task.loss(student, batch)[0], wanted.sum())
    torch.testing.assert_close(student(images), (own + other) / 2)


def test_a_teacher_of_other_classes_or_for_a_model_without_a_token_is_refused():
    task, _ = opened([])
    teacher = model_for(task)
    plain, taught = (models.spec("vit", **task.facts(), patch=4, distilled=distilled) for distilled in (False, True))
    with pytest.raises(Refusal, match=r"set model\.distilled=true"):
        task.taught_by(teacher, task, plain)
    with pytest.raises(Refusal, match="other classes or sizes"):
        task.taught_by(teacher, other(["a", "b"], task.learned.size), taught)
    searched = SearchLearned.unscaled(task.learned.labels, task.learned.size)
    with pytest.raises(Refusal, match="other classes or sizes"):
        task.taught_by(teacher, Work(SEARCH, searched), taught)
    pupil = task.taught_by(teacher, other(task.learned.labels, task.learned.size), taught)
    assert pupil.objective.teacher is teacher and task.objective.teacher is None


def test_how_far_heads_look_is_told_of_layers_with_unequal_heads():
    from heedful.looking.maps import Map
    from heedful.views.learned_filters import reach

    cells = ("0,0", "0,1")
    layers = [Map(f"layer {at}", torch.full((heads, 2, 2), 0.5), cells, cells) for at, heads in enumerate((1, 3))]
    curves = list(reach([layers], (1, 2), 0))
    assert [curve.points for curve in curves] == [((0.0, 0.5), (1.0, 0.5)), ((1.0, 0.5),), ((1.0, 0.5),)]


def test_classes_are_told_before_anything_is_learned():
    task, samples = opened()
    splits = Splits([one for one in samples if one.label in ("ring", "cross")], [], [])
    counts = {label: sum(one.label == label for one in splits.train) for label in ("ring", "cross")}
    assert all(
        f"{label} {100 * count / len(splits.train):.1f} %" in task.describe_data(splits)
        for label, count in counts.items()
    )
    many = [one for one in samples if one.label == "ring"] * 9
    few = [one for one in samples if one.label == "cross"][:1]
    assert "lopsided, so that 'cross' may be lost" in task.describe_data(Splits(many + few, [], []))
    untold = ImageLearned.unscaled(task.learned.labels, task.learned.size)
    assert untold.describe_data(splits) == "images    12 x 8 pixels in colours, as they are"
    assert "classes" not in untold.facts()  # it is told no class


def test_a_report_tells_of_each_class_of_the_commonest_and_how_sure_it_is():
    task, samples = opened()
    found = task.finding(model_for(task), samples)
    assert [name for name, _, _ in found.figures.rows[-2:]] == ["no model at all", "expected calibration error"]
    titles = [part.title for part in found.more]
    assert titles[:2] == ["What was taken for what", "How sure, and how often right"]
    assert sum(title.endswith("rollout through all layers") for title in titles) == 3
    assert sum(title.endswith("segments of the last layer") for title in titles) == 3
