"""What an image's answer is judged by: the classes that are given, and what a teacher says."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedful.data.collate import Batch
from heedful.models.numerics import precise
from heedful.models.vision.vit import ViT


def judged(logits: Tensor, batch: Batch, share: Tensor | None, smoothing: float) -> Tensor:
    """What scores (B K) say against the answers, each as much as its share of the image where two are mixed: B."""
    losses = cross_entropy(logits, batch["answer"], reduction="none", label_smoothing=smoothing)
    if share is None:
        return losses
    other = cross_entropy(logits, batch["other_answer"], reduction="none", label_smoothing=smoothing)
    return torch.lerp(other, losses, share.to(losses.dtype))


def taught(
    model: nn.Module, teacher: nn.Module, images: Tensor, batch: Batch, share: Tensor | None, smoothing: float
) -> Tensor:
    """Half by the answers, which the class token learns, half by what a teacher says, which another token learns.

    DeiT's hard distillation (Touvron et al., 2021): the teacher sees the very images, varied and mixed.
    """
    assert isinstance(model, ViT)
    with torch.no_grad():
        said = teacher(images).argmax(-1)
    own, other = (precise(logits) for logits in model.answers(images))
    return (judged(own, batch, share, smoothing) + cross_entropy(other, said, reduction="none")) / 2
