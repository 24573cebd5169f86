"""A discrete autoencoder: each patch of an image becomes one of a few visual tokens, of which it is drawn again.

Van den Oord et al. (2017) and Ramesh et al. (2021): tokens are drawn by Gumbel's noise while it learns.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import gumbel_softmax, one_hot

from heedful.models.family import Family, Model
from heedful.models.specs import Count
from heedful.models.vision.image_spec import ImageSpec, standard


class DVAESpec(ImageSpec):
    """Numbers of a discrete autoencoder: `vocab` tokens, each a vector of `width`."""

    family: Literal["dvae"] = "dvae"
    width: Count = 128
    """The width of the convolutions."""
    vocab: Count = 512
    """The number of visual tokens."""
    patch: Count = 4
    """The side of the square that becomes one token, in pixels: a power of two."""
    temperature: Annotated[float, Field(gt=0.0)] = 1.0
    """The temperature of the Gumbel-softmax draws in training."""

    @model_validator(mode="after")
    def _parts_can_be_made(self) -> Self:
        if self.patch & (self.patch - 1):
            raise ValueError(f"model.patch={self.patch} is no power of two, by which images are halved; choose one")
        if self.high % self.patch or self.wide % self.patch:
            raise ValueError(f"images of {self.high} x {self.wide} pixels cannot be cut by model.patch={self.patch}")
        with torch.device("meta"):
            standard(self)
        return self


def steps(spec: DVAESpec) -> int:
    """How often an image is halved."""
    return spec.patch.bit_length() - 1


class DVAE(Model):
    """Tells each patch by a token, and draws an image of tokens."""

    def __init__(self, spec: DVAESpec) -> None:
        super().__init__()
        s = self.spec = spec
        self.scale = standard(s) or nn.Identity()
        down: list[nn.Module] = [nn.Conv2d(s.channels, s.width, 3, padding=1), nn.GELU()]
        for _ in range(steps(s)):
            down += [nn.Conv2d(s.width, s.width, 4, 2, 1), nn.GroupNorm(1, s.width), nn.GELU()]
        self.encoder = nn.Sequential(*down, nn.Conv2d(s.width, s.vocab, 1))
        self.table = nn.Parameter(torch.randn(s.vocab, s.width) * 0.1)
        up: list[nn.Module] = [nn.Conv2d(s.width, s.width, 3, padding=1), nn.GELU()]
        for _ in range(steps(s)):
            up += [nn.ConvTranspose2d(s.width, s.width, 4, 2, 1), nn.GroupNorm(1, s.width), nn.GELU()]
        self.decoder = nn.Sequential(*up, nn.Conv2d(s.width, s.channels, 1))

    def forward(self, images: Tensor) -> Tensor:
        """What is drawn of the tokens of images, at their scale: B C H W -> B C H W."""
        return self.drawn(self.told(images))

    def told(self, images: Tensor) -> Tensor:
        """How likely each token is for each patch, before they become chances: B C H W -> B V h w."""
        return self.encoder(self.scale(images))

    def tokens(self, images: Tensor) -> Tensor:
        """The token of each patch, row by row: B C H W -> B P."""
        return self.told(images).flatten(2).argmax(1)

    def drawn(self, told: Tensor) -> Tensor:
        """What is drawn of tokens by these scores, by chance while it learns: B V h w -> B C H W."""
        if self.training:
            chosen = gumbel_softmax(told.float(), self.spec.temperature, hard=True, dim=1)
        else:
            chosen = one_hot(told.argmax(1), self.spec.vocab).movedim(-1, 1)
        return self.decoder(torch.einsum("bvhw,vm->bmhw", chosen.to(self.table.dtype), self.table))


FAMILY = Family(DVAESpec, DVAE, {"channels": 3, "high": 16, "wide": 16}, "heedful.models.cases:Pictures")
