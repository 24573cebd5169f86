"""ConViT: the first layers may weigh by place, as convolutions do, and learn how much (d'Ascoli et al., 2021)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention import GatedAttention, GridSight, Join, MultiHead
from heedful.blocks import Block, Stack
from heedful.inputs import Images
from heedful.models import blueprint as parts
from heedful.models import part_tables, part_words
from heedful.models.family import Family
from heedful.models.specs import Count, Groups
from heedful.models.vision.image_spec import ClassifierSpec, standard
from heedful.models.vision.vit import PatchSpec, ViT, pool, position, stem


class ConViTSpec(PatchSpec, ClassifierSpec, Groups):
    """Numbers and words of a ConViT: `local_up_to_layer` layers of patches alone, then others with a class token."""

    sizes: ClassVar[dict[str, dict[str, int]]] = {
        "tiny": {"depth": 12, "width": 192, "hidden": 768, "heads": 4},
        "small": {"depth": 12, "width": 432, "hidden": 1728, "heads": 9},
        "base": {"depth": 12, "width": 768, "hidden": 3072, "heads": 16},
    }
    family: Literal["convit"] = "convit"
    local_up_to_layer: Count = 10
    """How many of the first layers have gated heads, which begin as convolutions."""
    locality_strength: Annotated[float, Field(gt=0.0)] = 1.0
    """How narrowly the gated heads look at first."""
    pool: str = "first"
    """How patches become one answer: `first` (the class token), `mean` or `both`."""

    @model_validator(mode="after")
    def _layers_are_left_for_the_class_token(self) -> Self:
        part_words.entry_named("pool", self.pool, dict.fromkeys(("first", "mean", "both")))
        if self.local_up_to_layer >= self.depth:
            said = f"model.local_up_to_layer={self.local_up_to_layer}"
            raise ValueError(f"{said} leaves no layer of {self.depth} to the class token; make it less")
        with torch.device("meta"):
            local(self)
        return self


def local(spec: ConViTSpec) -> Block:
    """A block whose heads weigh by content and by place."""
    project = MultiHead(spec.width, spec.heads, bias=spec.project_bias)
    attention = GatedAttention(project, Join(spec.width, spec.width), spec.locality_strength)
    kind = part_words.choose("order", spec.order, part_tables.BLOCKS)
    made: Block = kind(spec.width, attention, parts.feedforward(spec.blueprint), parts.norm(spec.norm), spec.dropout)
    return made


class ConViT(ViT):
    """Reads an image as a sequence of patches, and says of which class it is."""

    spec: ConViTSpec

    def __init__(self, spec: ConViTSpec) -> None:
        nn.Module.__init__(self)
        s, b = spec, spec.blueprint
        self.spec = spec
        self.inputs = Images(stem(s), s.width, position(s, 0), 0, standard(s), s.dropout)
        self.token = nn.Parameter(torch.randn(1, s.width) * 0.02)
        blocks = [local(s) if at < s.local_up_to_layer else parts.block(b) for at in range(s.depth)]
        self.encoder = Stack(blocks, parts.last_norm(b))
        self.mask, self.bias, self.pool, self.distilled = parts.mask(b), parts.bias(b), pool(s, s.pool), None
        self.outputs = s.head(self.pool.times * s.width)

    def features(self, images: Tensor) -> Tensor:
        x, shape = self.inputs(images), self.inputs.shape(images)
        sight = GridSight(x, shape)
        for at, block in enumerate(self.encoder.blocks):
            if at == self.spec.local_up_to_layer:
                x = torch.cat((self.token.to(x.dtype).expand(len(x), -1, -1), x), 1)
                sight = GridSight(x, shape, self.mask, self.bias)
            x = block(x, sight)
        return self.encoder.norm(x)


FAMILY = Family(
    ConViTSpec,
    ConViT,
    {"channels": 3, "high": 16, "wide": 16, "patch": 4, "classes": 3, "local_up_to_layer": 1},
    "heedful.models.cases:Pictures",
)
