"""AutoFormer: many vision transformers in one, whose weights are parts of the same (Chen et al., 2021)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.func import functional_call

from heedful.blocks import Block, Stack
from heedful.inputs import Images
from heedful.models import blueprint as parts
from heedful.models.family import Family
from heedful.models.specs import Count
from heedful.models.vision.image_spec import ClassifierSpec, standard
from heedful.models.vision.vit import PooledSpec, ViT, pool, position, stem


@dataclass(frozen=True)
class Choice:
    """One of the networks in a supernet: its width, and the heads and hidden units of each of its layers."""

    width: int
    layers: tuple[tuple[int, int], ...]


class AutoFormerSpec(PooledSpec, ClassifierSpec):
    """Numbers and words of a vision transformer whose layers differ, or of the largest of many to choose among."""

    family: Literal["autoformer"] = "autoformer"
    layers: list[list[Count]] | None = None
    """The heads and hidden units of each layer, as `[heads, hidden]`; all layers are alike if unset."""
    widths: list[Count] = Field(default_factory=list)
    """The widths to search among, none above `width`; none are searched if empty."""
    depths: list[Count] = Field(default_factory=list)
    """The depths to search among, none above `depth`."""
    many_heads: list[Count] = Field(default_factory=list)
    """The numbers of heads to search among, for each layer."""
    many_hidden: list[Count] = Field(default_factory=list)
    """The feed-forward widths to search among, for each layer."""
    budget: Count | None = None
    """The most weights that the chosen model may have."""

    @property
    def searched(self) -> bool:
        """Whether there is something to choose among."""
        return bool(self.widths or self.depths or self.many_heads or self.many_hidden)

    @model_validator(mode="after")
    def _choices_are_parts_of_the_largest(self) -> Self:
        told = {"width": self.widths, "depth": self.depths, "heads": self.many_heads, "hidden": self.many_hidden}
        for key, some in told.items():
            most = getattr(self, key) or 4 * self.width
            if any(one > most for one in some):
                raise ValueError(f"model.{key}={most} is the largest to choose among, and {max(some)} is above it")
        if self.layers is not None and (len(self.layers) != self.depth or any(len(one) != 2 for one in self.layers)):
            raise ValueError(f"model.layers says heads and hidden units of {self.depth} layers: [[4, 128], ...]")
        made = parts.mask(self.blueprint), parts.bias(self.blueprint)
        if len({heads for heads, _ in choice(self).layers} | set(self.many_heads)) > 1 and any(
            m and m.heads > 1 for m in made
        ):
            raise ValueError("layers have unlike numbers of heads, and a mask or bias speaks of them; use another")
        if self.stem == "resnet":
            raise ValueError("a ResNet's batch norms know of no narrower network; use another model.stem")
        if self.pool == "attention":
            raise ValueError("layers that differ want a plain pool; leave model.pool=attention out")
        return self


def blocks(spec: AutoFormerSpec) -> Iterator[Block]:
    """The blocks, each with its own heads and hidden units; a head is as wide in all of them."""
    for heads, hidden in choice(spec).layers:
        yield parts.block(replace(spec.blueprint, heads=heads, hidden=hidden, key=parts.key(spec.blueprint)))


def choice(spec: AutoFormerSpec) -> Choice:
    """The network that a spec describes."""
    alike = [[spec.heads, spec.hidden or 4 * spec.width]] * spec.depth
    return Choice(spec.width, tuple((heads, hidden) for heads, hidden in (spec.layers or alike)[: spec.depth]))


class AutoFormer(ViT):
    """A vision transformer whose layers may differ; all smaller ones are parts of it, the first channels of each."""

    spec: AutoFormerSpec

    def __init__(self, spec: AutoFormerSpec) -> None:
        nn.Module.__init__(self)
        s, b = spec, spec.blueprint
        self.spec = spec
        self.inputs = Images(stem(s), s.width, position(s), s.first, standard(s), s.dropout)
        self.encoder = Stack(blocks(s), parts.last_norm(b))
        self.mask, self.bias, self.pool, self.distilled = parts.mask(b), parts.bias(b), pool(s, s.pool), None
        self.outputs = s.head(self.pool.times * s.width)

    def told(self, images: Tensor, chosen: Choice) -> Tensor:
        """What one of the networks in it says: B C H W -> B K."""
        small = skeleton(self.spec.model_dump_json(), chosen)
        small.train(self.training)
        return functional_call(small, self.part(small), (images,))

    def part(self, small: nn.Module) -> dict[str, Tensor]:
        """The weights of a smaller network, which are parts of its own."""
        own = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        wanted = (*small.named_parameters(), *small.named_buffers())
        return {name: cut(own[name], tensor.shape, "to_qkv" in name) for name, tensor in wanted}

    def chosen(self, chosen: Choice) -> AutoFormer:
        """One of the networks in it, alone."""
        small = AutoFormer(smaller(self.spec, chosen)).to(next(self.parameters()))
        with torch.no_grad():
            part = self.part(small)
            for name, tensor in (*small.named_parameters(), *small.named_buffers()):
                tensor.copy_(part[name])
        return small


def cut(tensor: Tensor, shape: torch.Size, thirds: bool) -> Tensor:
    """The first rows and columns of a weight; of one for queries, keys and values, the first of each third."""
    if not thirds:
        return tensor[tuple(slice(0, n) for n in shape)]
    three = tensor.unflatten(0, (3, -1))
    return three[(slice(None), *(slice(0, n) for n in (shape[0] // 3, *shape[1:])))].flatten(0, 1)


def smaller(spec: AutoFormerSpec, chosen: Choice) -> AutoFormerSpec:
    """The spec of one of the networks in a supernet."""
    numbers = {"width": chosen.width, "depth": len(chosen.layers), "layers": [list(one) for one in chosen.layers]}
    none: dict[str, Any] = {"widths": [], "depths": [], "many_heads": [], "many_hidden": [], "budget": None}
    return AutoFormerSpec(
        **dict(spec) | numbers | none | {"key": parts.key(spec.blueprint), "hidden": chosen.layers[0][1]}
    )


@cache
def skeleton(spec: str, chosen: Choice) -> AutoFormer:
    """Such a network without weights of its own."""
    with torch.device("meta"):
        return AutoFormer(smaller(AutoFormerSpec.model_validate_json(spec), chosen))


def weights(spec: AutoFormerSpec, chosen: Choice) -> int:
    """How many weights one of the networks has."""
    return sum(math.prod(tensor.shape) for tensor in skeleton(spec.model_dump_json(), chosen).parameters())


FAMILY = Family(
    AutoFormerSpec,
    AutoFormer,
    {"channels": 3, "high": 16, "wide": 16, "patch": 4, "classes": 3},
    "heedful.models.cases:Pictures",
)
