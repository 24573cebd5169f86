"""BEiT: hidden patches are told by visual tokens, as words behind a mask are (Bao et al., 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from heedful.attention import Attention, ClassTable, Context, Everything, GridSight, Join, TableAttention, UnbiasedKeys
from heedful.blocks import Block, Stack
from heedful.errors import Refusal
from heedful.inputs import Images
from heedful.models import blueprint as parts
from heedful.models import part_tables, part_words
from heedful.models.family import Family
from heedful.models.specs import Count, Share
from heedful.models.vision.dvae import DVAE, DVAESpec
from heedful.models.vision.image_spec import ClassifierSpec, standard
from heedful.models.vision.vit import PatchSpec, ViT, pool, position, stem


class BEiTSpec(PatchSpec, ClassifierSpec):
    """Numbers and words of a BEiT: `vocab` visual tokens are what hidden patches are told by."""

    family: Literal["beit"] = "beit"
    vocab: Count | None = None
    """The number of visual tokens; if unset, no patch is ever masked."""
    mask_ratio: Share = 0.4
    """The share of patches that are masked."""
    tokenizer_width: Count | None = None
    """The width of the discrete autoencoder that gives the visual tokens, if it is part of this model."""
    bias: str = "own"  # a table of ways from cell to cell: every layer's own, or one that all have (shared), or none
    position: str = "none"
    order: str = "scaled(first=0.1)"
    pool: str = "mean"
    """How patches become one answer: `mean`, `first` (the class token), `both` or `attention`."""

    @property
    def knows_order(self) -> bool:
        return True

    @model_validator(mode="after")
    def _parts_can_be_made(self) -> Self:
        part_words.entry_named("bias", self.bias, dict.fromkeys(("own", "shared", "none")))
        part_words.entry_named("pool", self.pool, dict.fromkeys(("mean", "first")))
        if (self.classes and self.vocab) or (self.tokenizer_width and not self.vocab):
            raise ValueError("a beit tells classes or visual tokens; leave the others out")
        with torch.device("meta"):
            block(self), position(self), standard(self)
        return self


def table(spec: BEiTSpec) -> ClassTable:
    """Numbers for each way from cell to cell."""
    return ClassTable(spec.heads, stem(spec).shape(spec.high, spec.wide))


def block(spec: BEiTSpec) -> Block:
    """A block whose keys have no bias, and whose scores know the way from cell to cell."""
    project, join = UnbiasedKeys(spec.width, spec.heads), Join(spec.width, spec.width)
    if part_words.parse(spec.mechanism)[0] in part_tables.PAIRS:
        raise Refusal(f"model.mechanism={spec.mechanism} looks twice, and a beit looks once; use the family vit")
    mechanism = part_tables.mechanism(spec.mechanism, spec.heads, spec.width // spec.heads)
    own = spec.bias == "own"
    attention = TableAttention(project, mechanism, join, table(spec)) if own else Attention(project, mechanism, join)
    kind = part_words.choose("order", spec.order, part_tables.BLOCKS)
    made: Block = kind(spec.width, attention, parts.feedforward(spec.blueprint), parts.norm(spec.norm), spec.dropout)
    return made


def coder(spec: BEiTSpec) -> DVAESpec:
    """The spec of the discrete autoencoder that tells patches by visual tokens."""
    shared = ("channels", "high", "wide", "mean", "deviation", "patch", "vocab")
    return DVAESpec(width=spec.tokenizer_width or 1, **{key: value for key, value in spec if key in shared})


class BEiT(ViT):
    """Reads an image as a sequence of patches; says of which class it is, or what stands behind hidden patches."""

    spec: BEiTSpec

    def __init__(self, spec: BEiTSpec) -> None:
        nn.Module.__init__(self)
        s = self.spec = spec
        self.inputs = Images(stem(s), s.width, position(s), s.first, standard(s), s.dropout)
        self.encoder = Stack(block(s) for _ in range(s.depth))
        self.table, self.mask = table(s) if s.bias == "shared" else None, parts.mask(s.blueprint)
        self.pool, self.norm = pool(s, s.pool), parts.norm(s.norm)(s.width)  # what was pooled is normed
        self.outputs = s.head(s.width)
        self.distilled = None
        self.tokens = nn.Linear(s.width, s.vocab) if s.vocab else None
        self.blank = nn.Parameter(torch.randn(s.width) * 0.02) if s.vocab else None
        self.coder = DVAE(coder(s)).requires_grad_(False) if s.tokenizer_width else None

    def answers(self, images: Tensor) -> tuple[Tensor, ...]:
        return (self.outputs(self.norm(self.pool(self.features(images)))),)

    def features(self, images: Tensor) -> Tensor:
        return self.read(self.inputs(images), self.inputs.shape(images))

    def encode(self, batch: Mapping[str, Tensor]) -> Context:
        return Context(self.norm(self.features(batch["image"])), Everything())

    def guess(self, images: Tensor, hidden: Tensor) -> Tensor:
        """Which visual token each patch is, of an image of which those in `hidden` are not seen: B P -> B P V."""
        assert self.tokens is not None and self.blank is not None
        x = self.read(self.inputs(images, hidden, self.blank), self.inputs.shape(images))
        return self.tokens(self.norm(x[:, self.spec.first :]))

    def read(self, x: Tensor, shape: tuple[int, int]) -> Tensor:
        """What the encoder makes of tokens: B T M -> B T M."""
        shared = None if self.table is None else self.table.sized(shape)
        return self.encoder(x, GridSight(x, shape, self.mask, shared))


FAMILY = Family(
    BEiTSpec, BEiT, {"channels": 3, "high": 16, "wide": 16, "patch": 4, "classes": 3}, "heedful.models.cases:Pictures"
)
