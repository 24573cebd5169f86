"""What a model of patches has learned: filters, positions, and how far heads look (Dosovitskiy et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor


def filters(matrix: Tensor, channels: int, count: int = 28) -> Tensor:
    """The principal components of a patch embedding (M Cpp), each as a patch from 0 to 1: count C p p."""
    side = round((matrix.shape[1] / channels) ** 0.5)
    exact = matrix.detach().double().cpu()
    components = torch.linalg.svd(exact - exact.mean(0), full_matrices=False).Vh[:count]  # the strongest first
    largest = components.abs().amax(1, keepdim=True).clamp(min=1e-12)
    return (components / largest / 2 + 0.5).unflatten(1, (channels, side, side)).float()


def similarity(table: Tensor, shape: tuple[int, int]) -> Tensor:
    """How alike the position of each cell is to those of all cells, by the cosine of their vectors: P rows columns."""
    vectors = torch.nn.functional.normalize(table.detach().float().cpu(), dim=-1)
    return (vectors @ vectors.T).unflatten(1, shape)


def segments(weights: Tensor, share: float = 0.6) -> Tensor:
    """The cells that hold a share of what a head looks at, the heaviest first: H rows columns, of ones and zeros.

    Heads of the last layer find things that nobody named (Caron et al., 2021).
    """
    flat = weights.flatten(1) / weights.flatten(1).sum(1, keepdim=True).clamp(min=1e-12)
    heavy, order = flat.sort(1, descending=True)
    before = heavy.cumsum(1) - heavy  # what the heavier ones hold
    return torch.zeros_like(flat).scatter(1, order, (before < share).to(flat.dtype)).view_as(weights)


def distances(weights: Tensor, shape: tuple[int, int]) -> Tensor:
    """How far each head looks on average, in cells, of weights from cell to cell: H P P -> H."""
    cells = torch.cartesian_prod(*(torch.arange(side, dtype=weights.dtype) for side in shape))
    apart = torch.cdist(cells, cells)  # P P
    shares = weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)
    return (shares * apart).sum(-1).mean(-1)
