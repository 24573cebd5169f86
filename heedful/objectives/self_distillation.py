"""Self-distillation (DINO): a student says of each view of an image what its moving average says of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.sample_dice import mix_bits
from heedful.data.transforms import Augmentation, ResizedCrop, levels
from heedful.models.numerics import precise
from heedful.models.vision.dino import DINO, DINOSpec, crowding
from heedful.objectives.image_classification import of_each
from heedful.objectives.masked_patches import dice_in
from heedful.objectives.objective import Loss, Objective
from heedful.pipelines.image_preprocessing import ImageLearned

LEAST = 0.25  # of the most that a small view shows of an image, what it shows at least
SIDE = 0.45  # of a small view, of the image's


@dataclass(frozen=True)
class SelfDistillation(Objective[ImageLearned]):
    """The cross-entropy between views of one image (Caron et al., 2021), and how crowded their vectors are (KoLeo)."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("loss", "koleo")

    def losses(self, model: nn.Module, batch: Batch, learned: ImageLearned) -> dict[str, Loss]:
        model = cast(DINO, model)
        large, small = views(levels(batch["images"]), dice_in(batch), model.spec, learned.augment)
        wanted = model.taught(torch.cat(large)).chunk(2)
        seen = model.student.projector.placed(model.student(torch.cat(large)))
        said = model.student.projector.compared(seen).chunk(2)
        if small:
            said = (*said, *model.student.told(torch.cat(small)).chunk(len(small)))
        logs = [(precise(one) / model.spec.student_temp).log_softmax(-1) for one in said]
        pairs = [-(one * other).sum(-1) for at, one in enumerate(wanted) for to, other in enumerate(logs) if at != to]
        crowded = torch.stack([crowding(precise(one)) for one in seen.chunk(2)])
        return {
            "loss": of_each(torch.stack(pairs).mean(0)),
            "koleo": of_each(crowded.mean(0), model.spec.koleo_weight),
        }

    def on_train_begin(self, model: nn.Module, learned: ImageLearned) -> None:
        model = cast(DINO, model)
        model.alike()

    def on_step_end(self, model: nn.Module, done: float, together: Callable[[Tensor], Tensor]) -> None:
        model = cast(DINO, model)
        model.follow(together(model.heard), done)

    def inference_model(self, model: nn.Module, learned: ImageLearned) -> nn.Module:
        return cast(DINO, model).left()


@torch.no_grad()
def views(images: Tensor, dice: Tensor, spec: DINOSpec, augment: Augmentation) -> tuple[list[Tensor], list[Tensor]]:
    """Two views of large parts of each image, and some of small ones at a smaller size, each varied by itself."""
    sides = [max(spec.patch, round(SIDE * side / spec.patch) * spec.patch) for side in images.shape[-2:]]
    large, small = (
        ResizedCrop(least=spec.global_crop_scale),
        ResizedCrop(least=LEAST * spec.global_crop_scale, most=spec.global_crop_scale),
    )
    with torch.autocast(images.device.type, enabled=False):
        made = []
        for at in range(2 + spec.local_crops):
            own = mix_bits(dice ^ (at + 1))
            part, to = (small, (sides[0], sides[1])) if at >= 2 else (large, None)
            cut = part.draw(own, (images.shape[-2], images.shape[-1]), to).pixels(images)
            made.append(augment.varied(cut, own))
    return made[:2], made[2:]
