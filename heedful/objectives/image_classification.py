"""Image classification: cross-entropy of varied and mixed images; and distillation of what a teacher says (DeiT)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedful.data.collate import Batch
from heedful.errors import Refusal
from heedful.models.numerics import precise
from heedful.models.vision.vit import PatchSpec
from heedful.objectives.objective import Loss, Objective, Share
from heedful.pipelines.image_preprocessing import ImageClasses


@runtime_checkable
class Distilled(Protocol):
    """A model with two answers: of the class token, and of the one that a teacher teaches."""

    def answers(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The scores of both."""


@dataclass(frozen=True)
class ImageClassification(Objective[ImageClasses]):
    """Classification of images; of two that are mixed, each class counts as much as its share.

    With a teacher, another token learns what it says: DeiT's hard distillation (Touvron et al., 2021).
    """

    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""
    teacher: nn.Module | None = None  # which sees the very images, varied and mixed

    @property
    def names(self) -> tuple[str, ...]:
        return ("loss",) if self.teacher is None else ("loss", "distillation")

    def losses(self, model: nn.Module, batch: Batch, learned: ImageClasses) -> dict[str, Loss]:
        images, share = learned.augment(batch)
        if self.teacher is None:
            return {"loss": of_each(judge_scores(precise(model(images)), batch, share, self.smoothing))}
        assert isinstance(model, Distilled)
        with torch.no_grad():
            said = self.teacher(images).argmax(-1)
        own, other = (precise(logits) for logits in model.answers(images))
        return {
            "loss": of_each(judge_scores(own, batch, share, self.smoothing), 0.5),
            "distillation": of_each(cross_entropy(other, said, reduction="none"), 0.5),
        }

    def taught_by(self, teacher: nn.Module, task: str, taught: Any, learned: ImageClasses, spec: Any) -> Self:
        if not (isinstance(spec, PatchSpec) and spec.taught):
            raise Refusal("teacher wants a model with a token that is taught; set model.distilled=true (family vit)")
        if type(taught) is not type(learned) or (taught.labels, taught.size) != (learned.labels, learned.size):
            raise Refusal("teacher has learned other classes or sizes of images; train it on the same data")
        return replace(self, teacher=teacher)


def of_each(losses: Tensor, weight: float = 1.0) -> Loss:
    """The loss of images that have one each: B."""
    return Loss(losses.sum(), torch.full((), len(losses), device=losses.device), weight)


def judge_scores(logits: Tensor, batch: Batch, share: Tensor | None, smoothing: float) -> Tensor:
    """The cross-entropy of scores (B K); of two mixed images each answer counts by its share: B."""
    losses = cross_entropy(logits, batch["answer"], reduction="none", label_smoothing=smoothing)
    if share is None:
        return losses
    other = cross_entropy(logits, batch["other_answer"], reduction="none", label_smoothing=smoothing)
    return torch.lerp(other, losses, share.to(losses.dtype))
