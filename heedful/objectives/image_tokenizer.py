"""Discrete autoencoding (dVAE): visual tokens are chosen, and the image is decoded from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from torch import nn

from heedful.data.collate import Batch
from heedful.models.numerics import precise
from heedful.models.vision.dvae import DVAE
from heedful.objectives.image_classification import of_each
from heedful.objectives.objective import Loss, Objective
from heedful.pipelines.image_preprocessing import ImageLearned

EVEN = 0.02  # how much it counts that all tokens are used, beside the error of the pixels


@dataclass(frozen=True)
class DrawnTokens(Objective[ImageLearned]):
    """The squared error of the reconstruction, and a penalty where visual tokens are used unevenly."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("loss", "token_use")

    def losses(self, model: nn.Module, batch: Batch, learned: ImageLearned) -> dict[str, Loss]:
        model = cast(DVAE, model)
        images, _ = learned.augment(batch)
        told = model.told(images)
        error = (precise(model.drawn(told)) - model.scale(images)).square().mean((1, 2, 3))
        used = precise(told).softmax(1).mean((0, 2, 3))  # over the batch: how often each token is taken
        uneven = (used * (used.clamp(min=1e-12) * model.spec.vocab).log()).sum()
        made = of_each(error)
        return {"loss": made, "token_use": Loss(made.count * uneven, made.count, EVEN)}
