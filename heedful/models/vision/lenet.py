"""LeNet-5: two convolutions, each with a mean of four neighbours after it, then three matrices (LeCun et al., 1998)."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator
from torch import Tensor, nn

from heedful.models.family import Family, Model
from heedful.models.vision.image_spec import ClassifierSpec, standard


class LeNetSpec(ClassifierSpec):
    """Numbers of a LeNet-5: those of the paper, 6, 16, 120 and 84, are its own."""

    family: Literal["lenet"] = "lenet"
    high: int = 32
    wide: int = 32

    @model_validator(mode="after")
    def _parts_can_be_made(self) -> Self:
        if min(side_left(self.high), side_left(self.wide)) < 1:
            raise ValueError(f"a LeNet wants images of 12 x 12 pixels or more, not {self.high} x {self.wide}")
        standard(self)
        return self


def side_left(side: int) -> int:
    """What two convolutions of 5 pixels and two halvings leave of a side; the first keeps its size, as MNIST wants."""
    return (side // 2 - 4) // 2


class LeNet(Model):
    """Reads a small image and says of which class it is."""

    def __init__(self, spec: LeNetSpec) -> None:
        super().__init__()
        s = self.spec = spec
        self.scale = standard(s) or nn.Identity()
        self.convolutions = nn.Sequential(
            nn.Conv2d(s.channels, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
        )  # fmt: skip
        self.matrices = nn.Sequential(
            nn.Linear(16 * side_left(s.high) * side_left(s.wide), 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh()
        )
        self.outputs = s.head(84)

    def forward(self, images: Tensor) -> Tensor:  # B C H W -> B K
        return self.outputs(self.matrices(self.convolutions(self.scale(images)).flatten(1)))


FAMILY = Family(
    LeNetSpec, LeNet, {"channels": 3, "high": 16, "wide": 16, "classes": 3}, "heedful.models.cases:Pictures"
)
