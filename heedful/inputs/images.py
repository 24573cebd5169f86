"""Images as inputs: patches, the learned tokens before them, and where each stands."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.inputs.grids import GridPosition, Shape
from heedful.inputs.patches import Patches


class Images(nn.Module):
    """Numbers of each channel and pixel become tokens, a class token first where there is one: B C H W -> B T M.

    Pixels are counted from 0 to 1; `mean` and `deviation` are those of the training data, channel by channel.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, stem: Patches, width: int, position: GridPosition, leading: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.stem, self.position, self.drop = stem, position, nn.Dropout(dropout)
        self.leading = nn.Parameter(torch.randn(leading, width) * 0.02) if leading else None
        self.register_buffer("mean", torch.zeros(stem.channels))
        self.register_buffer("deviation", torch.ones(stem.channels))

    def shape(self, images: Tensor) -> Shape:
        """How many rows and columns of patches images have."""
        return self.stem.shape(*images.shape[-2:])

    def forward(self, images: Tensor) -> Tensor:
        shape = self.shape(images)
        images = (images.to(self.mean.dtype) - self.mean[:, None, None]) / self.deviation[:, None, None]
        x = self.stem(images).flatten(2).transpose(1, 2)
        if self.leading is not None:
            x = torch.cat((self.leading.to(x.dtype).expand(len(x), -1, -1), x), 1)
        return self.drop(self.position(x, shape))
