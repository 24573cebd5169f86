"""Sequences in another order, in which kernels find side by side what is seen together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Order:
    """A permutation of a sequence by index (T), and the way back."""

    def __init__(self, at: Tensor) -> None:
        self.at, self.back = at, at.argsort()

    def __call__(self, x: Tensor) -> Tensor:  # B H T D -> B H T D
        return reorder(x, self.at, self.back)

    def undo(self, x: Tensor) -> Tensor:  # B H T D -> B H T D
        """The sequence in its former order."""
        return reorder(x, self.back, self.at)


def reorder(x: Tensor, at: Tensor, back: Tensor) -> Tensor:
    """A sequence by index, where `back` leads back."""
    y: Tensor = Moved.apply(x, at, back)  # type: ignore[no-untyped-call]
    return y


class Moved(torch.autograd.Function):
    """Gradients are fetched by the way back: through an index they would be sorted first and then added to zeros."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, at: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(at, back)
        return x.index_select(2, at)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor, None, None]:
        at, back = ctx.saved_tensors
        return reorder(given[0], back, at), None, None
