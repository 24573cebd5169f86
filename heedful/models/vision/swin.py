"""Swin: windows that shift from layer to layer, and patches that merge from stage to stage (Liu et al., 2021)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention import GridSight, Join, MultiHead, WindowAttention
from heedful.blocks import Block, Stack
from heedful.blocks.block import Dropout
from heedful.errors import Refusal
from heedful.inputs import ConvolvedPatches
from heedful.models import blueprint as parts
from heedful.models import part_tables, part_words
from heedful.models.encoder_protocol import ImageEncoder
from heedful.models.family import Family
from heedful.models.specs import Attends, Count, Stages
from heedful.models.vision.image_spec import ClassifierSpec, standard

DEPTHS = [2, 2, 6, 2]


class SwinSpec(ClassifierSpec, Attends):
    """Numbers and words of a Swin. Width and heads are those of the first stage; each further one doubles both."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"width": 96, "heads": 3, "depths": [2, 2, 6, 2]},
        "small": {"width": 96, "heads": 3, "depths": [2, 2, 18, 2]},
        "base": {"width": 128, "heads": 4, "depths": [2, 2, 18, 2]},
        "large": {"width": 192, "heads": 6, "depths": [2, 2, 18, 2]},
    }
    family: Literal["swin"] = "swin"
    patch: Count = 4
    """The side of a patch in pixels."""
    depths: Stages = DEPTHS
    """The number of blocks in each stage."""
    window: Count = 7
    """The side of an attention window, in patches."""
    mlp_ratio: Annotated[float, Field(gt=0.0)] = 4.0
    """The width of the feed-forward layer, as a multiple of the stage's width."""
    merge_norm: str | None = None
    """The norm of patch embedding and patch merging; that of the blocks if unset."""
    project_bias: bool = True
    """Whether the projections of queries, keys and values have a bias."""
    feedforward: str = "gelu"

    @model_validator(mode="after")
    def _parts_can_be_made(self) -> Self:
        with torch.device("meta"):
            for at, shape in enumerate(shapes(self)):
                block(self, at, shape, shifted=True)
            standard(self)
        if part_words.parse(self.mechanism)[0] != "softmax":
            check_mechanism(self)
        return self


@torch.no_grad()
def check_mechanism(spec: SwinSpec) -> None:
    """Refuses a mechanism that cannot do what windows ask of it: numbers added to scores, and parts that are apart."""
    side = 2 * spec.window
    small = spec.model_copy(update={"mlp_ratio": 1.0})
    try:
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            x = torch.zeros(1, side * side, spec.width)
            block(small, 0, (side, side), shifted=True).eval()(x, GridSight(x, (side, side)))
    except ValueError as error:
        why = str(error).partition(";")[0]
        raise Refusal(
            f"{why}, as the windows of a swin ask for; use model.mechanism=softmax, or the recipe vit"
        ) from None


def shapes(spec: SwinSpec) -> list[tuple[int, int]]:
    """How many rows and columns of cells each stage has."""
    made = [ConvolvedPatches(spec.channels, spec.width, spec.patch).shape(spec.high, spec.wide)]
    for _ in spec.depths[1:]:
        made.append((-(-made[-1][0] // 2), -(-made[-1][1] // 2)))
    return made


def block(spec: SwinSpec, stage: int, shape: tuple[int, int], shifted: bool) -> Block:
    """A block of a stage, whose windows are no larger than the smaller side of its grid."""
    wide = replace(spec.blueprint, width=spec.width << stage, heads=spec.heads << stage)
    wide = replace(wide, hidden=int(spec.mlp_ratio * wide.width))
    window = min(*shape, spec.window)
    project = MultiHead(wide.width, wide.heads, bias=spec.project_bias)
    shift = window // 2 if shifted else 0
    if part_words.parse(spec.mechanism)[0] in (*part_tables.MASKS, *part_tables.PAIRS):
        raise Refusal(
            f"a swin looks within windows of its own, so that model.mechanism={spec.mechanism} has no place in it; use "
            "model.window, or the recipe vit"
        )
    mechanism = part_words.choose(
        "mechanism",
        spec.mechanism,
        part_tables.MECHANISMS,
        heads=wide.heads,
        width=spec.width // spec.heads,
        length=window**2,
    )
    attention = WindowAttention(project, mechanism, Join(wide.width, wide.width), window, shift)
    return Block(wide.width, attention, parts.feedforward(wide), parts.norm(spec.norm), spec.dropout)


class Merging(nn.Module):
    """Four neighbours become one cell of twice the width: B (h w) M -> B (h/2 w/2) 2M."""

    def __init__(self, width: int, norm: nn.Module) -> None:
        super().__init__()
        self.norm, self.matrix = norm, nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor, shape: tuple[int, int]) -> Tensor:
        grid = x.unflatten(1, shape)
        grid = nn.functional.pad(grid, (0, 0, 0, shape[1] % 2, 0, shape[0] % 2))
        four = [
            grid[:, down::2, across::2] for across in (0, 1) for down in (0, 1)
        ]  # by columns, as in the paper's code
        return self.matrix(self.norm(torch.cat(four, -1).flatten(1, 2)))


class Swin(ImageEncoder):
    """Reads an image in stages, each of cells twice as large, and says of which class it is."""

    def __init__(self, spec: SwinSpec) -> None:
        super().__init__()
        s = self.spec = spec
        norm = part_tables.norm(s.merge_norm or s.norm)
        self.scale = standard(s) or nn.Identity()
        self.stem, self.first, self.drop = (
            ConvolvedPatches(s.channels, s.width, s.patch),
            norm(s.width),
            Dropout(s.dropout),
        )
        self.stages = nn.ModuleList(
            Stack(block(s, at, shape, shifted=bool(layer % 2)) for layer in range(s.depths[at]))
            for at, shape in enumerate(shapes(s))
        )
        self.merges = nn.ModuleList(Merging(s.width << at, norm(4 * s.width << at)) for at in range(len(s.depths) - 1))
        self.norm = parts.norm(s.norm)(s.width << (len(s.depths) - 1))
        self.outputs = s.head(s.width << (len(s.depths) - 1))

    def forward(self, images: Tensor) -> Tensor:  # B C H W -> B K
        return self.outputs(self.features(images).mean(1))

    @property
    def width(self) -> int:
        return self.spec.width << (len(self.spec.depths) - 1)

    def features(self, images: Tensor) -> Tensor:
        """What the last stage makes of each of its cells: B C H W -> B T M."""
        shape = self.stem.shape(*images.shape[-2:])
        x = self.drop(self.first(self.stem(self.scale(images)).flatten(2).transpose(1, 2)))
        for at, stage in enumerate(self.stages):
            if at:
                x = self.merges[at - 1](x, shape)
                shape = (-(-shape[0] // 2), -(-shape[1] // 2))
            x = stage(x, GridSight(x, shape))
        return self.norm(x)


FAMILY = Family(
    SwinSpec, Swin, {"channels": 3, "high": 16, "wide": 16, "patch": 4, "classes": 3}, "heedful.models.cases:Pictures"
)
