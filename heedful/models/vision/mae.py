"""The masked autoencoder: most patches are hidden, and a small decoder rebuilds them (He et al., 2022)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention import Everything, GridSight
from heedful.inputs import Images, SineGrid
from heedful.models import blueprint as parts
from heedful.models.blueprint import Blueprint
from heedful.models.family import Family, Model
from heedful.models.specs import Count, Stacked
from heedful.models.vision.image_spec import standard
from heedful.models.vision.vit import PatchSpec, position, stem

Hidden = Annotated[float, Field(gt=0.0, lt=1.0)]


class MAESpec(PatchSpec, Stacked):
    """Numbers and words of a masked autoencoder; inputs and encoder are those of a vision transformer."""

    family: Literal["mae"] = "mae"
    position: str = "sine"
    leading: Annotated[int, Field(ge=0)] = 1
    """The number of learned tokens before the patches, such as a class token."""
    mask_ratio: Hidden = 0.75
    """The share of patches that the encoder does not see."""
    decoder_width: Count = 512
    """The width of the decoder."""
    decoder_depth: Count = 8
    """The number of the decoder's blocks."""
    decoder_heads: Count = 16
    """The decoder's number of heads."""

    @property
    def first(self) -> int:
        return self.leading

    @model_validator(mode="after")
    def _the_decoder_can_be_made(self) -> Self:
        with torch.device("meta"):
            parts.block(decoder(self)), SineGrid(self.decoder_width)
        return self


def decoder(spec: MAESpec) -> Blueprint:
    """What the decoder's blocks are made of."""
    width, depth, heads = spec.decoder_width, spec.decoder_depth, spec.decoder_heads
    return replace(spec.blueprint, depth=depth, width=width, heads=heads, hidden=4 * width)


class MAE(Model):
    """Sees a few patches of an image, and says what the pixels of all of them are."""

    def __init__(self, spec: MAESpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec = spec
        self.inputs = Images(stem(s), s.width, position(s), s.first, standard(s), s.dropout)
        inner = decoder(s)
        self.encoder, self.mask, self.bias = parts.stack(b), parts.mask(b), parts.bias(b)
        self.bridge = nn.Linear(s.width, inner.width)
        self.blank = nn.Parameter(torch.randn(inner.width) * 0.02)  # in the place of a patch that was not seen
        self.position = SineGrid(inner.width)
        self.decoder, self.inner_mask, self.inner_bias = parts.stack(inner), parts.mask(inner), parts.bias(inner)
        self.outputs = nn.Linear(inner.width, s.channels * s.patch * s.patch)

    def forward(self, images: Tensor, seen: Tensor) -> Tensor:
        """The pixels of all patches, of an image of which those at `seen` are shown: B C H W, B K -> B P Cpp."""
        states, shape = self.encode(images, seen), self.inputs.shape(images)
        first = self.spec.first
        x = self.bridge(states)
        patches = self.blank.to(x.dtype).expand(len(x), shape[0] * shape[1], -1)
        patches = patches.scatter(1, seen[:, :, None].expand(-1, -1, x.shape[-1]), x[:, first:])
        x = self.position(torch.cat((x[:, :first], patches), 1), shape)
        return self.outputs(self.decoder(x, GridSight(x, shape, self.inner_mask, self.inner_bias)))[:, first:]

    def encode(self, images: Tensor, seen: Tensor) -> Tensor:
        """What the encoder makes of the learned tokens and of the patches at `seen`: B C H W, B K -> B T M."""
        x, first = self.inputs(images), self.spec.first
        shown = x[:, first:].gather(1, seen[:, :, None].expand(-1, -1, x.shape[-1]))
        x = torch.cat((x[:, :first], shown), 1)
        plain = isinstance(self.mask, Everything) and self.bias is None
        before = torch.arange(first, device=x.device).expand(len(x), -1)
        places = None if plain else torch.cat((before, first + seen), 1)
        return self.encoder(x, self.mask.over(x, None, self.bias, places))

    def patches(self, images: Tensor) -> Tensor:
        """The pixels of each patch, row by row and channel by channel: B C H W -> B P Cpp."""
        side = self.spec.patch
        cut = images.unflatten(3, (-1, side)).unflatten(2, (-1, side))  # B C h p w p
        return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

    def whole(self, patches: Tensor, shape: tuple[int, int]) -> Tensor:
        """The images of patches: B P Cpp -> B C H W."""
        side = self.spec.patch
        cut = patches.unflatten(1, shape).unflatten(3, (self.spec.channels, side, side))  # B h w C p p
        return cut.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)


def becomes(spec: MAESpec) -> dict[str, Any]:
    """The encoder alone, as a classifier that pools by the mean: nothing was asked of its class token."""
    return {"family": "vit", "pool": "mean", "leading": spec.first}


FAMILY = Family(
    MAESpec,
    MAE,
    {"channels": 3, "high": 16, "wide": 16, "patch": 4, "decoder_width": 24, "decoder_heads": 2},
    "heedful.models.cases:HiddenPictures",
    becomes=becomes,
)
