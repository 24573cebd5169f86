"""The vision transformer: an image is a sequence of patches (Dosovitskiy et al., 2021)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from heedful.attention import GridSight
from heedful.errors import Refusal
from heedful.inputs import GridPosition, Images, Patches
from heedful.models import blueprint as parts
from heedful.models import output_tables, part_tables, part_words
from heedful.models.encoder_protocol import ImageEncoder
from heedful.models.family import Family
from heedful.models.specs import Count, Deep, Projects, Stacked
from heedful.models.vision.image_spec import ClassifierSpec, ImageSpec, standard
from heedful.outputs import FirstPool

SIZES = {
    "tiny": {"depth": 12, "width": 192, "hidden": 768, "heads": 3},
    "small": {"depth": 12, "width": 384, "hidden": 1536, "heads": 6},
    "base": {"depth": 12, "width": 768, "hidden": 3072, "heads": 12},
    "large": {"depth": 24, "width": 1024, "hidden": 4096, "heads": 16},
    "huge": {"depth": 32, "width": 1280, "hidden": 5120, "heads": 16},
}


class PatchSpec(ImageSpec, Deep):
    """What all families share that read an image as a sequence of patches."""

    sizes: ClassVar[dict[str, dict[str, int]]] = SIZES | {
        f"{name}/{patch}": numbers | {"patch": patch} for name, numbers in SIZES.items() for patch in (14, 16, 32)
    }
    patch: Count = 16
    """The side of a patch in pixels."""
    stem: str = "convolution"
    """How patches become vectors: `convolution`, `matrix`, `overlapping` or `resnet` (the hybrid)."""
    position: str = "learned"  # learned, sine (2-D), rotary, rotary_2d, none
    feedforward: str = "gelu"

    @property
    def first(self) -> int:
        """How many learned tokens stand before the patches."""
        return 1

    @property
    def taught(self) -> bool:
        """Whether the second learned token answers too."""
        return False

    @model_validator(mode="after")
    def _parts_can_be_made(self) -> Self:
        with torch.device("meta"):
            b = self.blueprint
            parts.block(b), parts.bias(b), parts.mask(b), position(self), standard(self)
        return self


class PooledSpec(PatchSpec, Projects):
    """What vision transformers share that leave open how tokens are pooled, and how many of them are learned."""

    pool: str = "first"
    """How patches become one answer: `first` (the class token), `mean`, `both` or `attention`."""
    leading: Annotated[int, Field(ge=0)] | None = None
    """The number of learned tokens before the patches; if unset, 1 where there is a class token."""

    @property
    def first(self) -> int:
        """How many learned tokens stand before the patches."""
        return int(self.pool in ("first", "both")) + int(self.taught) if self.leading is None else self.leading

    @model_validator(mode="after")
    def _tokens_can_be_pooled(self) -> Self:
        part_words.entry_named("pool", self.pool, output_tables.IMAGE_POOLS)
        if self.pool in ("first", "both") and not self.first:
            raise ValueError(
                f"model.pool={self.pool} wants a class token, and model.leading is 0; leave one of them out"
            )
        with torch.device("meta"):
            pool(self, self.pool)
        return self


class ViTSpec(PooledSpec, ClassifierSpec, Stacked):
    """Numbers and words of a vision transformer. `tiny/16` is a size with the side of its patches."""

    family: Literal["vit"] = "vit"
    distilled: bool = False
    """Whether the model has a distillation token, which learns from a teacher (DeiT; Touvron et al., 2021)."""

    @property
    def taught(self) -> bool:
        return self.distilled

    @model_validator(mode="after")
    def _two_tokens_can_answer(self) -> Self:
        if self.distilled and (self.first < 2 or self.classes is None):
            raise ValueError("model.distilled wants classes, a class token and another; leave model.leading out")
        return self


def stem(spec: PatchSpec) -> Patches:
    """What makes patches of an image."""
    made: Patches = part_words.choose(
        "stem", spec.stem, part_tables.STEMS, channels=spec.channels, width=spec.width, patch=spec.patch
    )
    return made


def position(spec: PatchSpec, first: int | None = None) -> GridPosition:
    """Where patches stand, behind so many learned tokens or those of the spec."""
    shape = stem(spec).shape(spec.high, spec.wide)
    if part_words.parse(spec.position)[0] == "rotary_2d" and spec.width // spec.heads % 4:
        raise Refusal(
            f"rotary_2d turns pairs by row and by column and a head has {spec.width // spec.heads}; "
            "choose heads with a width that 4 divides"
        )
    place = (
        part_words.parse(spec.position)[0]
        if part_words.parse(spec.position)[0] in part_tables.ROTARY
        else spec.position
    )
    made: GridPosition = part_words.choose(
        "position",
        place,
        part_tables.GRIDS,
        shape=shape,
        width=spec.width,
        leading=spec.first if first is None else first,
    )
    return made


def pool(spec: PatchSpec, word: str) -> FirstPool:
    """What makes one vector of all tokens."""
    return part_words.entry_named("pool", word, output_tables.IMAGE_POOLS)(spec.width, spec.heads, spec.first)


class ViT(ImageEncoder):
    """Reads an image as a sequence of patches and says of which class it is."""

    def __init__(self, spec: PooledSpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec: Any = spec  # of the family that it is
        self.inputs = Images(stem(s), s.width, position(s), s.first, standard(s), s.dropout)
        self.encoder = parts.stack(b)
        self.mask, self.bias = parts.mask(b), parts.bias(b)
        self.pool = pool(s, s.pool)
        self.outputs = s.head(self.pool.times * s.width)
        self.distilled = s.head(s.width) if s.taught else None

    def forward(self, images: Tensor) -> Tensor:  # B C H W -> B K
        return torch.stack(self.answers(images)).mean(0)

    def answers(self, images: Tensor) -> tuple[Tensor, ...]:
        """What the class token says, and what the token says that was taught by a teacher, where there is one."""
        x = self.features(images)
        said = self.outputs(self.pool(x))
        return (said,) if self.distilled is None else (said, self.distilled(x[:, 1]))

    @property
    def width(self) -> int:
        return int(self.spec.width)

    def features(self, images: Tensor) -> Tensor:
        """What the encoder makes of each token: B C H W -> B T M, the learned tokens first."""
        x = self.inputs(images)
        return self.encoder(x, GridSight(x, self.inputs.shape(images), self.mask, self.bias))


FAMILY = Family(
    ViTSpec, ViT, {"channels": 3, "high": 16, "wide": 16, "patch": 4, "classes": 3}, "heedful.models.cases:Pictures"
)
