"""Rebuilding images of which most patches are hidden: a model learns to see without being told what it sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, pick, several
from heedful.data.images import Picture, Pixels
from heedful.data.images.decode import Size
from heedful.data.transforms import draw
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.overlay import Pictures
from heedful.looking.page import Example, Figures, Samples
from heedful.models import Spec
from heedful.models.numerics import device_of, finite, precise
from heedful.models.vision.mae import MAE
from heedful.models.vision.vit import PatchSpec, stem
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Result, Score
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.images import Images, levels, pixels_of
from heedful.tasks.seen import GOES_ON, coloured, maps_seen
from heedful.tasks.variety import Variety
from heedful.views.finding import Finding

HIDING = 40  # purpose of dice
SIDE_BY_SIDE = 8  # images of a report
STEADY = 1e-6  # added to the variance of a patch, which may be plain


class Rebuilding(Images):
    """Learns to rebuild what it does not see; scored by how much less the squared error is than that of plain patches.

    Each patch is told by its own mean and deviation (He et al., 2022), so that a plain guess is zero.
    """

    name: ClassVar[str] = "rebuilding"
    family: ClassVar[str] = "mae"
    also: ClassVar[tuple[str, ...]] = ()
    watch: ClassVar[str] = "skill"
    terms: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, labels: Sequence[str], size: Size, variety: Variety | None = None) -> None:
        super().__init__(labels, size, variety)
        self.variety.always = True  # what is hidden is another in every epoch, whatever else is varied

    def numbers(self) -> dict[str, Any]:
        return self.sizes()

    def suits(self, spec: Spec) -> None:
        some_can_be_hidden(spec)

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        images, _ = self.variety(batch)
        dice = batch.get("dice", torch.arange(len(images), device=images.device))
        return errors(model, images, dice).made.sum(), torch.full((), len(images), device=images.device)

    def score(self, model: nn.Module, samples: Sequence[Picture]) -> dict[str, float]:
        return {"skill": skill(self.errors(model, samples))}

    @torch.no_grad()
    def errors(self, model: nn.Module, pictures: Sequence[Picture | Pixels], size: int = 250) -> list[Pair]:
        """The error of each picture's hidden patches, and that of a plain guess; its place says which are hidden."""
        model.eval()
        made: list[Pair] = []
        for some in several(pictures, size):
            images = levels(torch.from_numpy(pixels_of(some)).to(device_of(model)))
            found = errors(model, images, self.dice(len(made), len(images), images.device))
            made += zip(finite(found.made).tolist(), found.plain.tolist(), strict=True)
            self.tell(len(images))
        return made

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        for group in several(read_all(inputs, self.known)):
            yield from (Score(skill([pair])) for pair in self.errors(model, group))

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        pixels = self.known(text)
        images = levels(torch.from_numpy(pixels)[None].to(device_of(model)))
        seen_at = errors(model, images, self.dice(0, 1, images.device)).seen
        with look(model) as seen:
            model(images, seen_at)
        name = self.called(text)
        return Example(
            name, maps_seen(model, seen, seen_at[0].tolist(), images), sections=(self.triples(model, [pixels]),)
        )

    @torch.no_grad()
    def triples(self, model: nn.Module, pictures: Sequence[Picture | Pixels]) -> Pictures:
        """What is shown, what was made of it, and what it was, side by side."""
        assert isinstance(model, MAE)
        model.eval()
        images = levels(torch.from_numpy(pixels_of(pictures)).to(device_of(model)))
        _, _, seen, made = errors(model, images, self.dice(0, len(images), images.device))
        patches = model.patches(images)
        mean, deviation = patches.mean(-1, keepdim=True), patches.var(-1, keepdim=True).add(STEADY).sqrt()
        shown = torch.zeros_like(patches[..., :1]).scatter(1, seen[:, :, None], 1.0)
        rebuilt = patches * shown + (made * deviation + mean) * (1 - shown)
        shape = model.inputs.shape(images)
        kinds = {"shown": patches * shown + 0.5 * (1 - shown), "rebuilt": rebuilt, "image": patches}
        rows = {name: model.whole(kind, shape).clamp(0, 1).mul(255).byte() for name, kind in kinds.items()}
        each = [(name, coloured(rows[name][at].cpu().numpy())) for at in range(len(images)) for name in kinds]
        note = "What is hidden is grey; the rebuilt patches have the mean and the deviation of the true ones."
        return Pictures("Shown, rebuilt, and the image", tuple(each), note, along=2 * len(kinds))

    def show(self, model: nn.Module, samples: Sequence[Picture]) -> Samples:
        rows = tuple(
            (Path(one.place).name if one.is_file else one.place, f"{skill([pair]):.3f}")
            for one, pair in zip(samples, self.errors(model, samples), strict=True)
        )
        return Samples("Images it never saw", ("image", "skill"), rows)

    def finding(self, model: nn.Module, samples: Sequence[Picture]) -> Finding | None:
        assert isinstance(model, MAE)
        hidden = f"{100 * model.spec.mask_ratio:.0f} %"
        figures = Figures("What is hidden", (("patches", hidden, "of every image"), GOES_ON))
        return Finding(figures, "", "mean", (self.triples(model, pick(samples, SIDE_BY_SIDE)),))


def some_can_be_hidden(spec: Spec) -> None:
    """Refuses images of one patch alone, which would be hidden, or seen, and patches that know of their neighbours."""
    if isinstance(spec, PatchSpec) and not stem(spec).apart:
        said = f"model.stem={spec.stem} makes a patch of its neighbours too, so that what is hidden would be seen"
        raise Refusal(f"{said}; use convolution or matrix")
    if isinstance(spec, PatchSpec) and prod(stem(spec).shape(spec.high, spec.wide)) < 2:
        said = f"images of {spec.high} x {spec.wide} pixels are one patch, and none is left to hide"
        raise Refusal(f"{said}; set larger data.pixels, or a smaller model.patch")


Pair = tuple[float, float]  # the error of what was made, and of a plain guess


def skill(errors: Sequence[Pair]) -> float:
    """By how much less the errors are than those of plain guesses, as a share of these."""
    return 1 - sum(made for made, _ in errors) / max(1e-12, sum(plain for _, plain in errors))


class Rebuilt(NamedTuple):
    """The error of hidden patches, and of plain ones (both B), which ones were seen (B K), and all made (B P Cpp)."""

    made: Tensor
    plain: Tensor
    seen: Tensor
    patches: Tensor


def errors(model: nn.Module, images: Tensor, dice: Tensor) -> Rebuilt:
    """What is made of images of which these dice hide the most."""
    assert isinstance(model, MAE)
    rows, columns = model.inputs.shape(images)
    count = rows * columns
    order = draw(dice, count, HIDING).argsort(1)
    seen = order[:, : max(1, int(count * (1 - model.spec.mask_ratio)))]
    made = precise(model(images, seen))
    wanted = precise(model.patches(images))
    wanted = (wanted - wanted.mean(-1, keepdim=True)) / wanted.var(-1, keepdim=True).add(STEADY).sqrt()
    hidden = torch.ones(images.shape[0], count, device=images.device, dtype=made.dtype).scatter(1, seen, 0.0)
    apart, plain = ((hidden * one.square().mean(-1)).sum(1) / hidden.sum(1) for one in (made - wanted, wanted))
    return Rebuilt(apart, plain, seen, made)
