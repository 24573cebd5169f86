"""Encoders: whatever a model reads, they make a context of it, for a decoder to look at by cross-attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from heedful.attention import Context, Everything
from heedful.models.family import Model
from heedful.models.specs import PAD


class Encoder(Model):
    """Encoder: makes a context (states B S M, and which of them are there) of the fields of a batch that it reads."""

    reads: ClassVar[frozenset[str]] = frozenset()  # the fields of a batch
    pad: int | None = PAD  # fills up what it reads, where that is of unequal length

    @property
    def width(self) -> int:
        """How wide the states of its context are."""
        raise NotImplementedError

    def encode(self, batch: Mapping[str, Tensor]) -> Context:
        """What the batch says, as states to look at."""
        raise NotImplementedError


class ImageEncoder(Encoder):
    """Image encoder: a context of all cells of its last feature map, or of all its tokens."""

    reads: ClassVar[frozenset[str]] = frozenset({"image"})
    pad = None

    def features(self, images: Tensor) -> Tensor:
        """What it makes of images: B C H W -> B S M, or a map B M h w."""
        raise NotImplementedError

    def encode(self, batch: Mapping[str, Tensor]) -> Context:
        states = self.features(batch["image"])
        return Context(states.flatten(2).mT if states.dim() == 4 else states, Everything())
