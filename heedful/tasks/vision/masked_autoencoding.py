"""Masked autoencoding (MAE): a model rebuilds images of which most patches are hidden, and so learns to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Self, cast

import torch
from torch import nn

from heedful.data.collate import pick, several
from heedful.data.images import Picture
from heedful.data.images.decode import as_hwc
from heedful.data.sample_dice import steady_dice
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.overlay import Pictures
from heedful.looking.page import Example, Figures, Samples
from heedful.metrics.skill import Pair, ReconstructionSkill, skill_of
from heedful.models import Spec
from heedful.models.numerics import device_of, finite
from heedful.models.vision.mae import MAE
from heedful.models.vision.vit import PatchSpec, stem
from heedful.objectives.masked_patches import STEADY, MaskedPixels, rebuild
from heedful.pipelines.attention_over_image import maps_seen
from heedful.pipelines.image_inputs import picture_name
from heedful.pipelines.image_preprocessing import ImageLearned, again, check_pictures
from heedful.pipelines.pipeline import Heard
from heedful.pipelines.vision_pipeline import AT_ONCE, VisionPipeline, images_of
from heedful.results import Score
from heedful.tasks.task import Task
from heedful.tasks.vision.image_batches import READERS, ImageCollate
from heedful.views.finding import Finding
from heedful.views.learned_filters import GOES_ON

SIDE_BY_SIDE = 8  # images of a report


@dataclass(frozen=True)
class MaskedLearned(ImageLearned):
    """Images of which a part can be hidden."""

    def suited(self, spec: Spec) -> Self:
        if isinstance(spec, PatchSpec) and not stem(spec).apart:
            said = f"model.stem={spec.stem} makes a patch of its neighbours too, so that what is hidden would be seen"
            raise Refusal(f"{said}; use convolution or matrix")
        if isinstance(spec, PatchSpec) and prod(stem(spec).shape(spec.high, spec.wide)) < 2:
            said = f"images of {spec.high} x {spec.wide} pixels are one patch, and none is left to hide"
            raise Refusal(f"{said}; set larger data.pixels, or a smaller model.patch")
        return self


@torch.no_grad()
def pixel_errors(model: nn.Module, samples: Sequence[Picture], learned: ImageLearned, heard: Heard) -> list[Pair]:
    """The error of each picture's hidden patches, and that of a plain guess; its place says which are hidden."""
    model.eval()
    made: list[Pair] = []
    for some in several(samples, AT_ONCE):
        found = rebuild(model, images_of(some, model), steady_dice(len(made), len(some), device_of(model)))
        made += zip(finite(found.made).tolist(), found.plain.tolist(), strict=True)
        heard(len(some))
    return made


@dataclass(frozen=True)
class Rebuilding(VisionPipeline[MaskedLearned]):
    """Masked autoencoding: how much of an image is rebuilt, beside a plain guess."""

    def results(
        self, model: nn.Module, samples: Sequence[Picture], learned: MaskedLearned, heard: Heard
    ) -> list[Score]:
        return [Score(skill_of([pair])) for pair in pixel_errors(model, samples, learned, heard)]

    @torch.no_grad()
    def look(self, model: nn.Module, given: Any, learned: MaskedLearned) -> Example:
        picture = self.accepts(given, learned)
        images = images_of([picture], model)
        seen_at = rebuild(model.eval(), images, steady_dice(0, 1, images.device)).seen
        with look(model) as seen:
            model(images, seen_at)
        shown = maps_seen(model, seen, seen_at[0].tolist(), images)
        return Example(picture_name(given, learned), shown, sections=(triples(model, [picture]),))


@torch.no_grad()
def triples(model: nn.Module, pictures: Sequence[Picture]) -> Pictures:
    """The visible patches, the reconstruction and the image, side by side."""
    model = cast(MAE, model)
    images = images_of(pictures, model)
    _, _, seen, made = rebuild(model.eval(), images, steady_dice(0, len(images), images.device))
    patches = model.patches(images)
    mean, deviation = patches.mean(-1, keepdim=True), patches.var(-1, keepdim=True).add(STEADY).sqrt()
    shown = torch.zeros_like(patches[..., :1]).scatter(1, seen[:, :, None], 1.0)
    drawn = patches * shown + (made * deviation + mean) * (1 - shown)
    shape = model.inputs.shape(images)
    kinds = {"shown": patches * shown + 0.5 * (1 - shown), "rebuilt": drawn, "image": patches}
    rows = {name: model.whole(kind, shape).clamp(0, 1).mul(255).byte() for name, kind in kinds.items()}
    each = [(name, as_hwc(rows[name][at].cpu().numpy())) for at in range(len(images)) for name in kinds]
    note = "What is hidden is grey; the rebuilt patches have the mean and the deviation of the true ones."
    return Pictures("Shown, rebuilt, and the image", tuple(each), note, along=2 * len(kinds))


def table(samples: Sequence[Picture], results: Sequence[Score], learned: MaskedLearned) -> Samples:
    """Images, and how well what was hidden of them was rebuilt."""
    rows = tuple((one.called, f"{said.value:.3f}") for one, said in zip(samples, results, strict=True))
    return Samples("Images it never saw", ("image", "skill"), rows)


def side_by_side(model: nn.Module, samples: Sequence[Picture], results: Any, learned: MaskedLearned) -> Finding:
    """A few images as they were shown, as they were rebuilt, and as they are."""
    model = cast(MAE, model)
    hidden = f"{100 * model.spec.mask_ratio:.0f} %"
    figures = Figures("What is hidden", (("patches", hidden, "of every image"), GOES_ON))
    return Finding(figures, "", "mean", (triples(model, pick(samples, SIDE_BY_SIDE)),))


TASK = Task(
    name="masked-autoencoding",
    readers=READERS,
    fit=MaskedLearned.fit,
    learned=MaskedLearned,
    encode=check_pictures,
    again=again,
    collate=ImageCollate(thrown=True),
    objective=MaskedPixels(),
    metrics=(ReconstructionSkill(source=pixel_errors),),
    watch="skill",
    pipeline=Rebuilding(),
    table=table,
    views=(side_by_side,),
    families=("mae",),
)
