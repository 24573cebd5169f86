"""Linear attention: the exponential replaced by a product of features, so that keys meet values first."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import elu, pad

from heedful.attention.card import Card
from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms.mask_support import reading_of
from heedful.attention.mechanisms.running import Given, Running, chunks, exact
from heedful.attention.sight import Sight

CHUNK = 128  # rows that are weighed among themselves; all before them is one sum


class LinearLike(Running):
    """Weights are dot products of features that are never negative, each row divided by its sum.

    A kind says what its features are.
    """

    def of_queries(self, q: Tensor) -> Tensor:
        """Features of queries: B H T D -> B H T F."""
        raise NotImplementedError

    def of_keys(self, k: Tensor) -> Tensor:
        """Features of keys: B G S D -> B G S F."""
        raise NotImplementedError

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        reading_of(sight, self.word)
        products = self.of_queries(exact(q)) @ repeat_kv(self.of_keys(exact(k)), q.shape[1]).mT * sight.dense
        return self.portioned(products, products.sum(-1, keepdim=True)).to(q.dtype)

    def given(self, q: Tensor, k: Tensor, v: Tensor, there: Tensor) -> Given:
        one = pad(exact(v), (0, 1), value=1.0)  # behind the values, whose sum is the divisor
        return (
            self.of_queries(exact(q)),
            repeat_kv(self.of_keys(exact(k)) * there, q.shape[1]),
            repeat_kv(one, q.shape[1]),
        )

    def run(self, given: Given, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v = (chunks(x, CHUNK) for x in given)
        sums = k.mT @ v  # of each chunk: B H N F E
        first = torch.zeros_like(sums[:, :, :1]) if past is None else past.unsqueeze(2)
        sums = torch.cat((first, sums), 2).cumsum(2)
        y = (q @ k.mT).tril() @ v + q @ sums[:, :, :-1]
        return y.flatten(2, 3)[:, :, : given[0].shape[2]], sums[:, :, -1]

    def written(self, given: Given) -> Tensor:
        return given[1].mT @ given[2]

    def finished(self, y: Tensor) -> Tensor:
        return self.portioned(y[..., :-1], y[..., -1:])

    def portioned(self, y: Tensor, total: Tensor) -> Tensor:
        """A row divided by its sum."""
        return divide_rows(y, total)


class Linear(LinearLike):
    """The exponential of a score replaced by a product of features elu + 1 (Katharopoulos et al., 2020).

    Cost: T, in time and memory; a new token costs the same however many came before. It cannot look sharply at one
    key, take a bias, or hide anything but padding and the future.
    """

    card: ClassVar = Card(
        paper="Transformers are RNNs (Katharopoulos et al., 2020)",
        year=2020,
        cost="T",
        limits="blurred: no sharp look at one key; no bias; no masks but padding and causal",
    )

    def of_queries(self, q: Tensor) -> Tensor:
        return elu(q) + 1

    def of_keys(self, k: Tensor) -> Tensor:
        return elu(k) + 1


def divide_rows(y: Tensor, total: Tensor) -> Tensor:
    """Each row by its sum; one that saw nothing stays zero. A clamped divisor would give it a gradient of NaN."""
    return y / total.masked_fill(total == 0, 1.0)
