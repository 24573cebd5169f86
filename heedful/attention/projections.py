"""Projections make queries, keys and values of states, and a join brings the heads together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention.rotary import Rotary
from heedful.attention.sight import Sight


def split(x: Tensor, heads: int) -> Tensor:
    """B T (H D) -> B H T D."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class MultiHead(nn.Module):
    """Queries for every head, keys and values for every group of heads, all of one sequence by one matrix.

    Where `groups` are fewer than heads, heads share keys and values (Ainslie et al., 2023), and of one group all do
    (Shazeer, 2019): so much less is made, and remembered while writing; looking itself costs the same. A `norm` keeps
    queries and keys at one scale before they are turned (Henry et al., 2020).
    """

    def __init__(
        self,
        width: int,
        heads: int,
        groups: int | None = None,
        key: int | None = None,
        value: int | None = None,
        position: Rotary | None = None,
        bias: bool = True,
        norm: Callable[[int], nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.groups, self.position = heads, groups or heads, position
        key, value = sizes(width, heads, self.groups, key, value)
        self.parts = [heads * key, self.groups * key, self.groups * value]
        self.to_qkv = nn.Linear(width, sum(self.parts), bias=bias)
        self.normed = norm is not None
        self.norm_q, self.norm_k = (norm(key), norm(key)) if norm else (nn.Identity(), nn.Identity())

    def forward(self, x: Tensor, sight: Sight) -> tuple[Tensor, Tensor, Tensor]:
        if self.cut_once:  # into heads: going back, the pieces are laid side by side in one pass and not in two
            cut = [self.heads, self.groups, self.groups]
            q, k, v = split(self.to_qkv(x), sum(cut)).split_with_sizes(cut, 1)
            return q, k, v
        qk, v = self.to_qkv(x).split_with_sizes([self.parts[0] + self.parts[1], self.parts[2]], -1)
        qk, v = split(qk, self.heads + self.groups), split(v, self.groups)  # B (H + G) T D, B G T D
        if self.normed:
            q, k = qk.split_with_sizes([self.heads, self.groups], 1)
            qk = torch.cat((self.norm_q(q), self.norm_k(k)), 1)
        if self.position is not None:
            qk = self.position(qk, sight.rows, sight)  # both at once, in half as many kernels
        q, k = qk.split_with_sizes([self.heads, self.groups], 1)
        return q, k, v

    @property
    def cut_once(self) -> bool:
        """Whether queries, keys and values are heads of one width, to which nothing more is done."""
        return self.position is None and not self.normed and self.parts[1] == self.parts[2]

    def beside(self, x: Tensor) -> Tensor:
        """The same side by side as the matrix gives them, and not yet turned: B T (H D + G D + G E)."""
        made = self.to_qkv(x)
        if not self.normed:
            return made
        q, k, v = made.split_with_sizes(self.parts, -1)
        q, k = self.norm_q(split(q, self.heads)), self.norm_k(split(k, self.groups))
        return torch.cat((q.transpose(1, 2).flatten(2), k.transpose(1, 2).flatten(2), v), -1)


class SharedQK(MultiHead):
    """Keys that are the queries, all of one length: like looks at like (Reformer: Kitaev et al., 2020)."""

    def __init__(self, width: int, heads: int, groups: int | None = None, **given: Any) -> None:
        if groups not in (None, heads):
            raise ValueError(f"queries that are keys have no groups, and {groups} are asked for; leave groups out")
        if given.get("norm") is not None:
            raise ValueError("queries that are keys have a norm of their own; leave key_norm out")
        super().__init__(width, heads, **given)
        self.parts = [self.parts[0], self.parts[2]]
        self.to_qkv = nn.Linear(width, sum(self.parts), bias=given.get("bias", True))

    def forward(self, x: Tensor, sight: Sight) -> tuple[Tensor, Tensor, Tensor]:
        q, v = (split(part, self.heads) for part in self.to_qkv(x).split_with_sizes(self.parts, -1))
        q = q if self.position is None else self.position(q, sight.rows, sight)
        return q, q * (q.square().mean(-1, keepdim=True) + 1e-6).rsqrt(), v


class UnbiasedKeys(MultiHead):
    """Queries and values have a bias and keys none, for it would change no weight (BEiT: Bao et al., 2022)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads, bias=False)
        self.bias_q, self.bias_v = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, sight: Sight) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().forward(x, sight)
        more, of_values = (bias.to(q.dtype).view(self.heads, 1, -1) for bias in (self.bias_q, self.bias_v))
        return q + more, k, v + of_values


class Across(nn.Module):
    """Queries of one sequence, keys and values of another, which may be of another width."""

    def __init__(
        self,
        width: int,
        heads: int,
        groups: int | None = None,
        context: int | None = None,
        key: int | None = None,
        value: int | None = None,
        position: Rotary | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.heads, self.groups, self.position = heads, groups or heads, position
        key, value = sizes(width, heads, self.groups, key, value)
        self.parts = [self.groups * key, self.groups * value]
        self.to_q = nn.Linear(width, heads * key, bias=bias)
        self.to_kv = nn.Linear(context or width, sum(self.parts), bias=bias)

    def queries(self, x: Tensor, sight: Sight) -> Tensor:
        """The queries of x: B T M -> B H T D."""
        q = split(self.to_q(x), self.heads)
        return q if self.position is None else self.position(q, sight.rows, sight)

    def answers(self, states: Tensor, sight: Sight) -> tuple[Tensor, Tensor]:
        """Keys and values of the other sequence: B S C -> B G S D each."""
        k, v = self.to_kv(states).split(self.parts, -1)
        k, v = split(k, self.groups), split(v, self.groups)
        return (k if self.position is None else self.position(k, sight.columns, sight)), v


class Join(nn.Linear):
    """Heads side by side, mixed by one matrix: B H T D -> B T M."""

    def forward(self, y: Tensor) -> Tensor:
        return super().forward(y.transpose(1, 2).flatten(2))


def sizes(width: int, heads: int, groups: int, key: int | None, value: int | None) -> tuple[int, int]:
    """The widths of a key and of a value, by default the model's width shared out among the heads."""
    if heads % groups:
        raise ValueError(
            f"{heads} heads cannot share {groups} groups of keys; choose a number of groups that divides the heads"
        )
    if width % heads and not (key and value):
        raise ValueError(
            f"a width of {width} cannot be shared out among {heads} heads; choose heads that divide the width"
        )
    return key or width // heads, value or width // heads
