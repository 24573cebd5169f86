"""Choosing a network: all of them learn at once, and the best one within a budget is bred (Chen et al., 2021)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, pick
from heedful.data.images import Picture
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking.page import Figures, Samples
from heedful.models import Spec
from heedful.models.numerics import device_of, precise
from heedful.models.vision.autoformer_nas import AutoFormer, AutoFormerSpec, Choice, choice, weights
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.images import Images, levels, pixels_of
from heedful.tasks.teaching import judged
from heedful.views.finding import Finding

GENERATIONS, KEPT, BORN = 5, 6, 10  # of the search: how often, how many live on, and how many are new each time
CHANGED = 0.3  # how likely each number of a child is another
SEEN = 500  # validation images that a network is judged by
TRIES = 50  # to find a network within the budget by chance alone


class Searching(Images):
    """Learns all networks of a supernet, then chooses one; scored by the share of images that it gets right."""

    name: ClassVar[str] = "searching"
    family: ClassVar[str] = "autoformer"
    also: ClassVar[tuple[str, ...]] = ()
    even: ClassVar[bool] = False  # another network at every step: nothing to capture

    found: Choice | None = None
    told_of: tuple[tuple[str, ...], ...] = ()

    def suits(self, spec: Spec) -> None:
        if isinstance(spec, AutoFormerSpec):
            smallest(spec)

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        images, share = self.variety(batch)
        assert isinstance(model, AutoFormer)
        dice = random.Random(int(torch.randint(1 << 30, ()))) if model.training and model.spec.searched else None
        said = model.told(images, drawn(model.spec, dice)) if dice else model(images)
        losses = judged(precise(said), batch, share, terms.smoothing)
        return losses.sum(), torch.full((), len(images), device=images.device)

    def settle(self, model: nn.Module, splits: Splits[Picture]) -> None:
        assert isinstance(model, AutoFormer)
        if not model.spec.searched:
            return
        samples = pick(splits.valid, SEEN)
        images = levels(torch.from_numpy(pixels_of(samples)).to(device_of(model)))
        wanted = torch.tensor([self.numbered[one.label] for one in samples], device=images.device)

        @torch.no_grad()
        def right(one: Choice) -> float:
            return float((model.eval().told(images, one).argmax(-1) == wanted).float().mean())

        self.found, self.told_of = search(model.spec, right)

    def kept(self, model: nn.Module) -> nn.Module:
        return model.chosen(self.found) if self.found is not None and isinstance(model, AutoFormer) else model

    def finding(self, model: nn.Module, samples: Sequence[Picture]) -> Finding | None:
        made = super().finding(model, samples)
        if made is None or self.found is None:
            return made
        header = ("generation", "right on validation images", "weights", "width", "heads and hidden units by layer")
        table: Any = Samples("The search, best of each generation", header, self.told_of)
        layers = f"{len(self.found.layers)} layers of width {self.found.width}"
        cards = ("chosen", f"{int(self.told_of[-1][2].replace(',', '')):,}", f"weights, {layers}"), *made.figures.rows
        return Finding(Figures(made.figures.title, cards), made.layer, made.head, (table, *made.more))


def drawn(spec: AutoFormerSpec, dice: random.Random) -> Choice:
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


def changed(spec: AutoFormerSpec, dice: random.Random, one: Choice) -> Choice:
    """A network with some of its numbers drawn again."""
    other = drawn(spec, dice)
    whole = choice(spec)
    depth = len(other.layers) if dice.random() < CHANGED else len(one.layers)
    old = [one.layers[at] if at < len(one.layers) else layer(spec, dice, whole.layers[at]) for at in range(depth)]
    new = [layer(spec, dice, whole.layers[at]) if dice.random() < CHANGED else own for at, own in enumerate(old)]
    return Choice(other.width if dice.random() < CHANGED else one.width, tuple(new))


def crossed(dice: random.Random, one: Choice, two: Choice) -> Choice:
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
            one = crossed(dice, one, least)
        return one

    living, told = [fresh(lambda: drawn(spec, dice)) for _ in range(KEPT + BORN)], []
    for generation in range(GENERATIONS):
        scores |= {one: right(one) for one in living if one not in scores}
        best = sorted(scores, key=lambda one: (-scores[one], weights(spec, one)))[:KEPT]
        told.append((str(generation), f"{100 * scores[best[0]]:.1f} %", *described(spec, best[0])))
        living = [fresh(partial(changed, spec, dice, dice.choice(best))) for _ in range(BORN // 2)]
        living += [fresh(partial(crossed, dice, dice.choice(best), dice.choice(best))) for _ in range(BORN // 2)]
    return best[0], tuple(told)


def described(spec: AutoFormerSpec, one: Choice) -> tuple[str, str, str]:
    """A network in words: its weights, its width, and its layers."""
    layers = " ".join(f"{heads}/{hidden}" for heads, hidden in one.layers)
    return f"{weights(spec, one):,}", str(one.width), layers
