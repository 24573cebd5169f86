"""What learns without being told: views that agree, visual tokens, tokens behind hidden patches; and a search."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

import heedful
from heedful import models
from heedful.data.images.decode import Size
from heedful.data.readers.labelled_images import Shapes
from heedful.errors import Refusal
from heedful.models.vision.autoformer_nas import Choice, weights
from heedful.models.vision.dino import crowding
from heedful.objectives import architecture_search
from heedful.objectives.architecture_search import search
from heedful.objectives.masked_patches import guess_tokens
from heedful.objectives.self_distillation import views
from heedful.tasks import TASKS
from heedful.tasks.work import Work

SIZES = {"patch": 4, "width": 16, "heads": 2, "depth": 1, "hidden": 24}
CODED = {"vocab": 8, "tokenizer_width": 8}
DINO = {"out_dim": 12, "bottleneck_dim": 6, "hidden_dim": 10, "local_crops": 2}


def opened(kind, augment=("flip",)):
    data = Shapes(samples=24, held_out=8, pixels=[8, 12], augment=list(augment))
    task, splits = TASKS[kind].open(data, 7)
    return task, list(splits.train)


def test_a_student_is_asked_for_what_its_teacher_says_of_the_other_views():
    task, samples = opened("self-distillation")
    torch.manual_seed(0)
    model = heedful.build("dino", **task.facts(), **SIZES, **DINO)
    batch = task.batch(task.augmented(samples[:5], 0))
    large, small = views(batch["images"].float() / 255, batch["dice"], model.spec, task.learned.augment)
    assert [view.shape[-2:] for view in (*large, *small)] == [(8, 12)] * 2 + [(4, 4)] * 2
    with torch.no_grad():
        model.centre.uniform_(-0.1, 0.1)
        wanted = [((model.told(view) - model.centre) / 0.04).softmax(-1) for view in large]
        said = [(model.student.told(view) / 0.1).log_softmax(-1) for view in (*large, *small)]
        pairs = [(0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3)]
        losses = [-(wanted[a] * said[b]).sum(-1) for a, b in pairs]
        units = [normalize(model.student.projector.network(model.student(view)), dim=-1) for view in large]
        apart = [torch.cdist(unit, unit).fill_diagonal_(9.0).amin(-1) for unit in units]
        found, count = task.loss(model, batch)
    torch.testing.assert_close(found, torch.stack(losses).mean(0).sum() - 0.1 * torch.stack(apart).log().mean(0).sum())
    assert int(count) == 5


@pytest.mark.parametrize("share", [0.15, 0.6])
def test_large_views_show_at_least_a_share_of_an_image_and_small_ones_at_most(share):
    task, _ = opened("self-distillation")
    model = heedful.build("dino", **task.facts(), **SIZES, **DINO, global_crop_scale=share)
    place = torch.linspace(0, 1, 64)
    ramps = torch.stack((place[:, None].expand(64, 64), place.expand(64, 64), torch.zeros(64, 64)))
    sizes = [
        [(view[:, n].amax((1, 2)) - view[:, n].amin((1, 2))) for n in (0, 1)]
        for some in views(ramps.expand(40, 3, 64, 64), torch.arange(40), model.spec, task.learned.augment)
        for view in some
    ]
    large, *small = [high * wide for high, wide in sizes][1:]
    assert share - 0.1 < large.min() < share + 0.1 and large.max() > 0.8
    assert all(0.8 * share / 4 < one.min() < share / 2 and share / 2 < one.max() < share + 0.02 for one in small)


def test_vectors_that_are_told_to_spread_do_and_one_alone_need_not():
    torch.manual_seed(0)
    vectors = (torch.randn(1, 6) + 0.01 * torch.randn(20, 6)).requires_grad_()
    before = crowding(vectors).mean()
    for _ in range(20):
        (slope,) = torch.autograd.grad(crowding(vectors).sum(), vectors)
        vectors = (vectors - 0.05 * normalize(slope, dim=-1)).detach().requires_grad_()
    assert slope.isfinite().all() and crowding(vectors).mean() < before - 1
    same = torch.ones(3, 6, requires_grad=True)  # no distance is still one that can be gone back through
    crowding(same).sum().backward()
    assert same.grad.isfinite().all() and crowding(same).isfinite().all()
    assert torch.equal(crowding(vectors[:1]), torch.zeros(1))


def test_a_teacher_follows_its_student_and_is_what_is_left():
    task, samples = opened("self-distillation")
    model = heedful.build("dino", **task.facts(), **SIZES, **DINO, teacher_momentum=0.9, center_momentum=0.5).train()
    task.on_train_begin(model)
    own = dict(model.named_parameters())
    assert all(torch.equal(own[name], one) for name, one in model.student.named_parameters())
    before = model.inputs.leading.clone()
    task.loss(model, task.batch(task.augmented(samples[:6], 0)))[0].backward()
    heard = model.heard.clone()
    assert heard[-1] == 12 and all(p.grad is None for p in own.values() if not p.requires_grad)
    with torch.no_grad():
        model.student.inputs.leading.add_(1.0)
    task.on_step_end(model, 0.5, lambda x: x)
    kept = 1 - 0.1 * (math.cos(math.pi / 2) + 1) / 2
    torch.testing.assert_close(model.inputs.leading, before + (1 - kept))
    torch.testing.assert_close(model.centre, heard[:-1] / 12 / 2)
    assert not model.heard.any()
    left = task.inference_model(model.eval())
    assert left.spec.family == "vit"
    x = torch.rand(2, 3, 8, 12)
    torch.testing.assert_close(left(x), model(x))


def coder(task):
    torch.manual_seed(1)
    return heedful.build("dvae", **task.facts(), width=8, vocab=7, patch=4)


def test_what_is_drawn_of_tokens_is_that_of_the_likeliest_and_learns_by_chance():
    task, samples = opened("image-tokenizer")
    model = coder(task).eval()
    images = task.batch(samples[:3])["images"].float() / 255
    tokens = model.tokens(images)
    assert tokens.shape == (3, 6) and int(tokens.max()) < 7
    states = model.table[tokens].mT.unflatten(2, (2, 3))
    torch.testing.assert_close(model(images), model.decoder(states))
    loss, count = task.loss(model.train(), task.batch(samples[:3]))
    loss.backward()
    assert int(count) == 3 and all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_hidden_patches_are_as_many_as_said_and_are_judged_alone():
    task, samples = opened("masked-image-modelling")
    model = heedful.build("beit", **task.facts(), **SIZES, vocab=7, tokenizer_width=8, mask_ratio=0.5).eval()
    teacher = coder(task)
    task = replace(task, chosen=replace(task.objective, teacher=teacher))
    task.on_train_begin(model)
    batch = task.batch(task.augmented(samples[:4], 0))
    images, _ = task.learned.augment(batch)
    said, wanted, hidden = guess_tokens(model, images, batch["dice"])
    assert hidden.sum(1).tolist() == [3] * 4 and torch.equal(wanted, teacher.eval().tokens(images))
    losses = torch.nn.functional.cross_entropy(said.mT, wanted, reduction="none")
    each = torch.stack([losses[at][hidden[at]].mean() for at in range(4)])
    torch.testing.assert_close(task.loss(model, batch)[0], each.sum())
    assert not any(p.requires_grad for p in model.coder.parameters())
    other = models.spec("beit", **task.facts(), **SIZES, vocab=9, tokenizer_width=8)
    with pytest.raises(Refusal, match=r"model\.vocab=9 and the teacher has 7; set model\.vocab=7"):
        task.taught_by(teacher, Work(TASKS["image-tokenizer"], opened("image-tokenizer")[0].learned), other)


SPACE = {"widths": [8, 16], "depths": [1, 2], "many_heads": [1, 2], "many_hidden": [12, 24]}


@pytest.mark.parametrize("mechanism", ["softmax", "performer(features=8)"])  # which draws for each head
def test_every_network_of_a_supernet_is_a_part_of_it(mechanism):
    task, _ = opened("architecture-search")
    torch.manual_seed(0)
    sizes = SIZES | {"depth": 2, "mechanism": mechanism}
    model = heedful.build("autoformer", **task.facts(), **sizes, **SPACE).eval()
    x = torch.rand(2, 3, 8, 12)
    for chosen in (Choice(8, ((1, 12),)), Choice(16, ((2, 24), (1, 12))), Choice(8, ((2, 12), (1, 24)))):
        alone = model.chosen(chosen)
        torch.testing.assert_close(model.told(x, chosen), alone(x))
        assert sum(p.numel() for p in alone.parameters()) == weights(model.spec, chosen)
        first = alone.encoder.blocks[0].attention.project.to_qkv.weight
        whole = model.encoder.blocks[0].attention.project.to_qkv.weight
        side = first.shape[0] // 3  # of queries, keys and values: the first rows of each
        assert torch.equal(first[side : 2 * side], whole[16 : 16 + side, : chosen.width])
    torch.testing.assert_close(model.told(x, Choice(16, ((2, 24), (2, 24)))), model(x))


def test_a_search_finds_the_best_within_its_budget():
    task, _ = opened("architecture-search")
    sizes = {**SIZES, "depth": 2}
    spec = models.spec("autoformer", **task.facts(), **sizes, **SPACE, budget=3000)
    best, told = search(spec, lambda one: one.width + sum(heads + hidden for heads, hidden in one.layers) / 100)
    assert weights(spec, best) <= 3000 and len(told) == 5
    every = [Choice(w, layers) for w in (8, 16) for layers in (((2, 24),), ((2, 24), (2, 24)), ((2, 24), (1, 12)))]
    fitting = [one for one in every if weights(spec, one) <= 3000]
    assert best.width == max(one.width for one in fitting)


def test_a_budget_is_held_against_the_smallest_network_before_anything_is_learned(monkeypatch):
    task, _ = opened("architecture-search")
    numbers = {**task.facts(), **SIZES, "depth": 2, **SPACE, "layers": [[2, 24], [1, 12]]}
    whole = models.spec("autoformer", **numbers)
    every = [
        Choice(width, layers)
        for width in SPACE["widths"]
        for depth in (1, 2)
        for layers in itertools.product(itertools.product(SPACE["many_heads"], SPACE["many_hidden"]), repeat=depth)
    ]
    least = min(weights(whole, one) for one in every)
    exact, below = (models.spec("autoformer", **numbers, budget=least - less) for less in (0, 1))
    task.suited(exact)
    monkeypatch.setattr(architecture_search, "TRIES", 0)  # chance has met none within it
    judged = []
    assert search(exact, lambda one: judged.append(one) or 0.0)[0] == Choice(8, ((1, 12),))
    assert {weights(whole, one) for one in judged} == {least}
    with pytest.raises(
        Refusal, match=rf"budget={least - 1} is below the smallest .* set model\.budget={least} or more"
    ):
        task.suited(below)
    alone = models.spec("autoformer", **task.facts(), **SIZES, budget=10)  # with nothing to choose among
    with pytest.raises(Refusal, match=r"model\.budget=10 is below the smallest network"):
        task.suited(alone)


@pytest.mark.parametrize(
    ("task", "family", "more"), [("masked-autoencoding", "mae", {}), ("masked-image-modelling", "beit", CODED)]
)
def test_of_one_patch_nothing_can_be_hidden(task, family, more):
    def suits(high: int) -> None:
        spec = models.spec(family=family, channels=1, high=high, wide=4, **SIZES, **more)
        TASKS[task].learned.unscaled((), Size(1, high, 4)).suited(spec)

    suits(8)
    with pytest.raises(Refusal, match="images of 4 x 4 pixels are one patch, and none is left to hide"):
        suits(4)
