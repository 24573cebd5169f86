"""DINO (self-distillation): a student learns to say of each view what its moving average says (Caron et al., 2021)."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from heedful.models.family import Family
from heedful.models.specs import Count, Share, Stacked
from heedful.models.vision.vit import PooledSpec, ViT, ViTSpec

Temperature = Annotated[float, Field(gt=0.0)]
CLOSEST = 1e-6  # the square of a distance that is still told from none


class DINOSpec(PooledSpec, Stacked):
    """Numbers and words of a student and its teacher, both of which are vision transformers."""

    family: Literal["dino"] = "dino"
    out_dim: Count = 4096
    """The number of prototypes that views are compared by."""
    bottleneck_dim: Count = 256
    """The width of the bottleneck in which prototypes are compared."""
    hidden_dim: Count = 2048
    """The width of the projection head's hidden layers."""
    local_crops: Annotated[int, Field(ge=0, le=100)] = 6
    """The number of local crops of each image, beside two global ones."""
    global_crop_scale: Annotated[float, Field(gt=0.0, le=1.0)] = 0.4
    """The share of the image above which crops are global, and below which they are local."""
    teacher_temp: Temperature = 0.04
    """The temperature of the teacher's softmax."""
    student_temp: Temperature = 0.1
    """The temperature of the student's softmax."""
    teacher_momentum: Share = 0.996
    """The share of the teacher's weights that is kept at each step; it rises to 1."""
    center_momentum: Share = 0.9
    """The share of the centre (the mean of the teacher's outputs) that is kept at each step."""
    koleo_weight: Annotated[float, Field(ge=0.0)] = 0.1
    """The weight of the KoLeo loss, which keeps images apart."""


def as_vit_spec(spec: DINOSpec) -> ViTSpec:
    """The spec of the vision transformer that is left when all is learned."""
    kept = {name: value for name, value in spec if name in ViTSpec.model_fields and name != "family"}
    return ViTSpec(**kept)


class Projector(nn.Module):
    """Projection head: three layers, then the cosine between a vector and each prototype: B M -> B K."""

    def __init__(self, width: int, between: int, projected: int, prototypes: int) -> None:
        super().__init__()
        sizes = (width, between), (between, between), (between, projected)
        maps = [nn.Linear(*size) for size in sizes]
        self.network = nn.Sequential(maps[0], nn.GELU(), maps[1], nn.GELU(), maps[2])
        self.prototypes = nn.Parameter(torch.randn(prototypes, projected) * 0.02)

    def placed(self, x: Tensor) -> Tensor:
        """Where a vector stands among the prototypes, all of them of length one: B M -> B N."""
        return normalize(self.network(x), dim=-1)

    def compared(self, placed: Tensor) -> Tensor:
        """How alike it is to each: B N -> B K."""
        return placed @ normalize(self.prototypes, dim=-1).T

    def forward(self, x: Tensor) -> Tensor:
        return self.compared(self.placed(x))


class Viewer(ViT):
    """A vision transformer that tells views by prototypes."""

    spec: DINOSpec

    def __init__(self, spec: DINOSpec) -> None:
        super().__init__(spec)
        width = self.pool.times * spec.width
        self.projector = Projector(width, spec.hidden_dim, spec.bottleneck_dim, spec.out_dim)

    def told(self, images: Tensor) -> Tensor:
        """What it says of images of one size: B C H W -> B K."""
        return self.projector(self(images))


def crowding(vectors: Tensor) -> Tensor:
    """KoLeo: minus the log of the distance from each direction to the nearest other one (Sablayrolles et al., 2019).

    DINOv2 adds it to what leaves the encoder (Oquab et al., 2023), here it is of what stands among the prototypes:
    agreeing alone, a young model agrees best by seeing nothing, and puts all in one place. B M -> B.
    """
    if len(vectors) < 2:
        return vectors.new_zeros(len(vectors))
    with torch.autocast(vectors.device.type, enabled=False):
        unit = normalize(vectors, dim=-1)
        alike = (unit @ unit.T).masked_fill(torch.eye(len(unit), dtype=torch.bool, device=unit.device), -1.0)
        return -(2 - 2 * alike.amax(-1)).clamp(min=CLOSEST).log() / 2


class DINO(Viewer):
    """The student, and the teacher, which follows it and is what is kept in the end."""

    centre: Tensor
    heard: Tensor

    def __init__(self, spec: DINOSpec) -> None:
        super().__init__(spec)
        self.requires_grad_(False)
        self.student = Viewer(spec)
        self.register_buffer("centre", torch.zeros(spec.out_dim))
        self.register_buffer(
            "heard", torch.zeros(spec.out_dim + 1)
        )  # the sum of what was said in a step, and how often

    @torch.no_grad()
    def alike(self) -> None:
        """Gives the teacher's weights to the student."""
        own = dict(self.named_parameters())
        for name, tensor in self.student.named_parameters():
            tensor.copy_(own[name])

    @torch.no_grad()
    def taught(self, images: Tensor) -> Tensor:
        """The teacher's probabilities of prototypes (B K), centred and sharpened so that they do not collapse."""
        said = self.told(images).float()
        if self.training:
            self.heard.add_(torch.cat((said.sum(0), said.new_full((1,), len(said)))))
        return ((said - self.centre) / self.spec.teacher_temp).softmax(-1)

    @torch.no_grad()
    def follow(self, heard: Tensor, done: float) -> None:
        """Moves the teacher towards the student and the centre towards what was heard, `done` of the run being over."""
        kept = 1 - (1 - self.spec.teacher_momentum) * (math.cos(math.pi * done) + 1) / 2
        own = dict(self.named_parameters())
        for name, tensor in self.student.named_parameters():
            own[name].lerp_(tensor, 1 - kept)
        share = (
            1 - self.spec.center_momentum if done else 1.0
        )  # all of the first, lest everything be one before it is told
        self.centre.lerp_(heard[:-1] / heard[-1].clamp(min=1), share)
        self.heard.zero_()

    def left(self) -> ViT:
        """The teacher alone, as a vision transformer."""
        model = ViT(as_vit_spec(self.spec)).to(self.centre.device)
        own = self.state_dict()
        model.load_state_dict({name: own[name] for name in model.state_dict()})
        return model


FAMILY = Family(
    DINOSpec,
    DINO,
    {"channels": 3, "high": 16, "wide": 16, "patch": 4},
    "heedful.models.cases:Pictures",
    becomes=lambda spec: {"family": "vit"},
)
