"""Images as inputs: patches, the learned tokens before them, and where each stands."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from heedful.blocks.dropout import Dropout
from heedful.inputs.grids import GridPosition, Shape
from heedful.inputs.patches import Patches


class Standard(nn.Module):
    """Each channel less its mean, divided by its deviation: B C H W -> B C H W."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        if len(mean) != len(deviation) or min(deviation) <= 0:
            raise ValueError("a mean and a deviation above 0 are wanted for each channel")
        self.register_buffer("mean", torch.tensor(mean), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return (images.to(self.mean.dtype) - self.mean[:, None, None]) / self.deviation[:, None, None]


class Images(nn.Module):
    """Numbers of each channel and pixel become tokens, a class token first where there is one: B C H W -> B T M.

    `scale` takes the numbers first: it knows the mean and the deviation of each channel.
    """

    def __init__(
        self,
        stem: Patches,
        width: int,
        position: GridPosition,
        leading: int = 1,
        scale: Standard | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.scale = scale or nn.Identity()
        self.stem, self.position, self.drop = stem, position, Dropout(dropout)
        self.leading = nn.Parameter(torch.randn(leading, width) * 0.02) if leading else None

    def shape(self, images: Tensor) -> Shape:
        """How many rows and columns of patches images have."""
        return self.stem.shape(*images.shape[-2:])

    def forward(self, images: Tensor, hidden: Tensor | None = None, blank: Tensor | None = None) -> Tensor:
        """The tokens; `blank` (M) stands in the place of those patches that are `hidden` (B P)."""
        shape = self.shape(images)
        x = self.stem(self.scale(images)).flatten(2).transpose(1, 2)
        if hidden is not None and blank is not None:
            x = torch.where(hidden[:, :, None], blank.to(x.dtype), x)
        if self.leading is not None:
            x = torch.cat((self.leading.to(x.dtype).expand(len(x), -1, -1), x), 1)
        return self.drop(self.position(x, shape))
