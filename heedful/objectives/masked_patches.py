"""Masked image modelling: hidden patches are rebuilt by their pixels (MAE), or told by their visual tokens (BEiT)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from heedful.data.collate import Batch
from heedful.data.sample_dice import draw
from heedful.errors import Refusal
from heedful.models.numerics import precise
from heedful.models.vision.beit import BEiT
from heedful.models.vision.dvae import DVAE
from heedful.models.vision.mae import MAE
from heedful.objectives.image_classification import of_each
from heedful.objectives.objective import Loss, Objective, Share
from heedful.pipelines.image_preprocessing import ImageLearned

PIXELS, TOKENS = 40, 41  # purposes of dice
COARSE = 3  # cells along the side of the noise whose heights are hidden: patches that stand together go together
STEADY = 1e-6  # added to the variance of a patch, which may be plain


@dataclass(frozen=True)
class MaskedPixels(Objective[ImageLearned]):
    """Masked autoencoding (He et al., 2022): the squared error of hidden patches.

    Each patch is told by its own mean and deviation, so that a plain guess is zero.
    """

    def losses(self, model: nn.Module, batch: Batch, learned: ImageLearned) -> dict[str, Loss]:
        images, _ = learned.augment(batch)
        return {"loss": of_each(rebuild(model, images, dice_in(batch)).made)}


def dice_in(batch: Batch) -> Tensor:
    """The dice of a batch's images, or their numbers where they have none."""
    images = batch["images"]
    return batch.get("dice", torch.arange(len(images), device=images.device))


class Rebuilt(NamedTuple):
    """The error of hidden patches, and of plain ones (both B), which ones were seen (B K), and all made (B P Cpp)."""

    made: Tensor
    plain: Tensor
    seen: Tensor
    patches: Tensor


def rebuild(model: nn.Module, images: Tensor, dice: Tensor) -> Rebuilt:
    """The reconstruction of images of which these dice hide the most."""
    model = cast(MAE, model)
    rows, columns = model.inputs.shape(images)
    count = rows * columns
    order = draw(dice, count, PIXELS).argsort(1)
    seen = order[:, : max(1, int(count * (1 - model.spec.mask_ratio)))]
    made = precise(model(images, seen))
    wanted = precise(model.patches(images))
    wanted = (wanted - wanted.mean(-1, keepdim=True)) / wanted.var(-1, keepdim=True).add(STEADY).sqrt()
    hidden = torch.ones(images.shape[0], count, device=images.device, dtype=made.dtype).scatter(1, seen, 0.0)
    apart, plain = ((hidden * one.square().mean(-1)).sum(1) / hidden.sum(1) for one in (made - wanted, wanted))
    return Rebuilt(apart, plain, seen, made)


@dataclass(frozen=True)
class MaskedTokens(Objective[ImageLearned]):
    """Masked image modelling (Bao et al., 2022): hidden patches are told by the tokens of a discrete autoencoder."""

    smoothing: Share = 0.0
    """The strength of label smoothing on the visual tokens."""
    teacher: nn.Module | None = None  # whose tokens they are

    def losses(self, model: nn.Module, batch: Batch, learned: ImageLearned) -> dict[str, Loss]:
        images, _ = learned.augment(batch)
        said, wanted, hidden = guess_tokens(model, images, dice_in(batch))
        losses = cross_entropy(said.flatten(0, 1), wanted.flatten(), reduction="none", label_smoothing=self.smoothing)
        return {"loss": of_each((losses.view_as(hidden) * hidden).sum(1) / hidden.sum(1))}

    def taught_by(self, teacher: nn.Module, task: str, taught: Any, learned: ImageLearned, spec: Any) -> Self:
        if task != "image-tokenizer" or taught.size != learned.size:
            raise Refusal("teacher has no visual tokens for such images; train one on the same: teacher=recipe:dvae")
        own = cast(DVAE, teacher).spec
        for key, value in (
            ("vocab", own.vocab),
            ("tokenizer_width", own.width),
            ("patch", own.patch),
        ):
            if getattr(spec, key) != value:
                raise Refusal(f"model.{key}={getattr(spec, key)} and the teacher has {value}; set model.{key}={value}")
        return replace(self, teacher=teacher)

    def on_train_begin(self, model: nn.Module, learned: ImageLearned) -> None:
        model = cast(BEiT, model)
        assert model.coder is not None
        if self.teacher is None:
            raise Refusal("visual tokens come from a teacher, and the run has none; add teacher=recipe:dvae")
        model.coder.load_state_dict(self.teacher.state_dict())


def guess_tokens(model: nn.Module, images: Tensor, dice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What is said of every patch (B P V), its visual token (B P), and which were hidden (B P)."""
    model = cast(BEiT, model)
    assert model.coder is not None
    shape = model.inputs.shape(images)
    count = shape[0] * shape[1]
    noise = draw(dice, COARSE * COARSE, TOKENS).view(-1, 1, COARSE, COARSE)
    fine = interpolate(noise, size=shape, mode="bilinear", align_corners=True).flatten(1)
    order = (fine + 1e-3 * draw(dice, count, TOKENS + 1)).argsort(1)
    least = min(count - 1, max(1, round(count * model.spec.mask_ratio)))
    hidden = torch.zeros(len(images), count, dtype=torch.bool, device=images.device).scatter(1, order[:, :least], True)
    with torch.no_grad():
        wanted = model.coder.tokens(images)
    return precise(model.guess(images, hidden)), wanted, hidden
