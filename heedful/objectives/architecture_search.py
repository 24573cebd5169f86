"""Architecture search (AutoFormer): all networks learn at once, then the best in a budget is bred."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, cast

import torch
from torch import nn

from heedful.data.collate import Batch, pick
from heedful.data.images.gallery import Picture, pixels_of
from heedful.data.splits import Splits
from heedful.data.transforms import levels
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.numerics import device_of, precise
from heedful.models.vision.autoformer_nas import AutoFormer, AutoFormerSpec, Choice, choice, weights
from heedful.objectives.image_classification import judge_scores, of_each
from heedful.objectives.objective import Loss, Objective, Share
from heedful.pipelines.image_preprocessing import ImageClasses, Searched

GENERATIONS, KEPT, BORN = 5, 6, 10  # of the search: how often, how many live on, and how many are new each time
CHANGED = 0.3  # how likely each number of a child is another
SEEN = 500  # validation images that a network is judged by
TRIES = 50  # to find a network within the budget by chance alone


@dataclass(frozen=True)
class SearchLearned(ImageClasses):
    """The classes of images; once the search is over, the network that was chosen and how it was found."""

    found: Choice | None = None
    told_of: tuple[tuple[str, ...], ...] = ()  # the best of each generation

    def suited(self, spec: Spec) -> Self:
        if isinstance(spec, Searched):
            smallest(cast(AutoFormerSpec, spec))
        return self


@dataclass(frozen=True)
class Supernet(Objective[SearchLearned]):
    """Classification by another part of a supernet at each step, drawn by chance (Chen et al., 2021)."""

    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""

    def losses(self, model: nn.Module, batch: Batch, learned: SearchLearned) -> dict[str, Loss]:
        images, share = learned.augment(batch)
        model = cast(AutoFormer, model)
        dice = random.Random(int(torch.randint(1 << 30, ()))) if model.training and model.spec.searched else None
        said = model.told(images, draw_choice(model.spec, dice)) if dice else model(images)
        return {"loss": of_each(judge_scores(precise(said), batch, share, self.smoothing))}

    def calibrated(self, model: nn.Module, splits: Splits[Picture], learned: SearchLearned) -> SearchLearned:
        model = cast(AutoFormer, model)
        if not model.spec.searched:
            return learned
        samples = pick(splits.valid, SEEN)
        images = levels(torch.from_numpy(pixels_of(samples)).to(device_of(model)))
        wanted = torch.tensor([learned.number[one.label] for one in samples], device=images.device)

        @torch.no_grad()
        def right(one: Choice) -> float:
            return float((model.eval().told(images, one).argmax(-1) == wanted).float().mean())

        found, told_of = search(model.spec, right)
        return replace(learned, found=found, told_of=told_of)

    def inference_model(self, model: nn.Module, learned: SearchLearned) -> nn.Module:
        return model if learned.found is None else cast(AutoFormer, model).chosen(learned.found)


def draw_choice(spec: AutoFormerSpec, dice: random.Random) -> Choice:
    """A network by chance."""
    whole = choice(spec)
    depth = dice.choice(spec.depths or [spec.depth])
    layers = [layer(spec, dice, whole.layers[at]) for at in range(depth)]
    return Choice(dice.choice(spec.widths or [spec.width]), tuple(layers))


def smallest(spec: AutoFormerSpec) -> Choice:
    """The network with the fewest weights; a budget that is below them is refused."""
    layers = choice(spec).layers[: min(spec.depths or [spec.depth])]
    least = tuple((min(spec.many_heads or [heads]), min(spec.many_hidden or [hidden])) for heads, hidden in layers)
    one = Choice(min(spec.widths or [spec.width]), least)
    if spec.budget is not None and (count := weights(spec, one)) > spec.budget:
        raise Refusal(
            f"model.budget={spec.budget} is below the smallest network to choose among, which has {count:,} weights; "
            f"set model.budget={count} or more"
        )
    return one


def layer(spec: AutoFormerSpec, dice: random.Random, largest: tuple[int, int]) -> tuple[int, int]:
    """Heads and hidden units of a layer by chance."""
    return dice.choice(spec.many_heads or [largest[0]]), dice.choice(spec.many_hidden or [largest[1]])


def mutate(spec: AutoFormerSpec, dice: random.Random, one: Choice) -> Choice:
    """A network with some of its numbers drawn again."""
    other = draw_choice(spec, dice)
    whole = choice(spec)
    depth = len(other.layers) if dice.random() < CHANGED else len(one.layers)
    old = [one.layers[at] if at < len(one.layers) else layer(spec, dice, whole.layers[at]) for at in range(depth)]
    new = [layer(spec, dice, whole.layers[at]) if dice.random() < CHANGED else own for at, own in enumerate(old)]
    return Choice(other.width if dice.random() < CHANGED else one.width, tuple(new))


def cross(dice: random.Random, one: Choice, two: Choice) -> Choice:
    """A network that has each number of one of two others."""
    first, second = (one, two) if dice.random() < 0.5 else (two, one)
    layers = [
        dice.choice((own, second.layers[at])) if at < len(second.layers) else own for at, own in enumerate(first.layers)
    ]
    return Choice(dice.choice((one.width, two.width)), tuple(layers))


def search(spec: AutoFormerSpec, right: Callable[[Choice], float]) -> tuple[Choice, tuple[tuple[str, ...], ...]]:
    """The best network within the budget that evolution finds, and the best of each generation."""
    dice, scores, least = random.Random(0), dict[Choice, float](), smallest(spec)

    def fits(one: Choice) -> bool:
        return spec.budget is None or weights(spec, one) <= spec.budget

    def fresh(make: Callable[[], Choice]) -> Choice:
        one = next((one for one in (make() for _ in range(TRIES)) if fits(one)), None) or make()
        while not fits(one):  # in so narrow a budget it is met from below
            one = cross(dice, one, least)
        return one

    living, told = [fresh(lambda: draw_choice(spec, dice)) for _ in range(KEPT + BORN)], []
    for generation in range(GENERATIONS):
        scores |= {one: right(one) for one in living if one not in scores}
        best = sorted(scores, key=lambda one: (-scores[one], weights(spec, one)))[:KEPT]
        told.append((str(generation), f"{100 * scores[best[0]]:.1f} %", *describe_choice(spec, best[0])))
        living = [fresh(partial(mutate, spec, dice, dice.choice(best))) for _ in range(BORN // 2)]
        living += [fresh(partial(cross, dice, dice.choice(best), dice.choice(best))) for _ in range(BORN // 2)]
    return best[0], tuple(told)


def describe_choice(spec: AutoFormerSpec, one: Choice) -> tuple[str, str, str]:
    """A network in words: its weights, its width, and its layers."""
    layers = " ".join(f"{heads}/{hidden}" for heads, hidden in one.layers)
    return f"{weights(spec, one):,}", str(one.width), layers
