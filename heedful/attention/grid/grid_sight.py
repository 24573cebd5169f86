"""Sequences that are grids, as the patches of an image are: their sight knows its rows and columns."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention.mask_and_bias import Bias, Everything, Mask
from heedful.attention.rotary import Rotary
from heedful.attention.sight import Sight
from heedful.errors import Refusal


class GridSight(Sight):
    """The sight of a sequence (B T M) whose last tokens are the cells of a grid, row by row.

    The tokens before them, such as a class token, stand nowhere on the grid.
    """

    def __init__(self, x: Tensor, shape: tuple[int, int], mask: Mask | None = None, bias: Bias | None = None) -> None:
        here = torch.arange(x.shape[1], device=x.device)[None]  # 1 T
        super().__init__(mask or Everything(), here, here, x.shape[0], bias, counted=True)
        self.shape, self.leading = shape, x.shape[1] - shape[0] * shape[1]


class Rotary2D(Rotary):
    """Half of a head's channels is turned by the row, half by the column: scores know the way from cell to cell.

    The turning of Su et al. (2021) on each axis, as Heo et al. (2024) give it to images. Tokens that stand nowhere on
    the grid are not turned.
    """

    def __init__(self, base: float = 100.0) -> None:
        super().__init__(base)

    def __call__(self, x: Tensor, at: Tensor, sight: Sight) -> Tensor:
        """x (B H T D), the tokens of a grid, turned; the angles are made once per forward."""
        if not isinstance(sight, GridSight):
            raise Refusal("rotary_2d turns by row and column, and this sequence is no grid; use rotary")
        if x.shape[-1] % 4:
            raise Refusal(f"rotary_2d turns pairs of pairs of channels, and a head has {x.shape[-1]}; use 4, 8, ...")
        cos, sin = sight.once(("rotary 2-D", self.base, x.shape[-1], x.dtype), lambda: self.angles(sight, x))
        one, two = x.chunk(2, -1)
        return torch.cat((one * cos - two * sin, one * sin + two * cos), -1)

    def angles(self, sight: GridSight, x: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of every token's angles: T D/2 each, first by the row, then by the column."""
        exact, width = torch.promote_types(x.dtype, torch.float32), x.shape[-1] // 2
        rate = self.base ** (-torch.arange(0, width, 2, device=x.device, dtype=exact) / width)  # D/4
        cells = torch.cartesian_prod(*(torch.arange(n, device=x.device, dtype=exact) for n in sight.shape))
        angle = (cells[:, :, None] * rate).flatten(1)  # cells, D/2
        angle = torch.cat((angle.new_zeros(sight.leading, angle.shape[1]), angle))
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)
