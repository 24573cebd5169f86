"""Average attention: every position takes the mean of all that it sees, and nothing is compared."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mechanisms.linear import LinearLike


class Average(LinearLike):
    """The plain mean of the values that are seen: each score is the same (Zhang et al., 2018).

    Cost: T, in time and memory; a new token costs the same however many came before. It looks at nothing in
    particular. The paper's feed-forward and gate behind the mean are no part of it. It takes no bias, and hides
    padding and the future alone.
    """

    card: ClassVar = Card(
        "Accelerating Neural Transformer via an Average Attention Network (Zhang et al., 2018)",
        2018,
        "T",
        limits="looks at everything alike; no bias; no masks but padding and causal; without the paper's gate",
        tier="B",
    )

    def of_queries(self, q: Tensor) -> Tensor:
        return q[..., :1] * 0 + 1

    def of_keys(self, k: Tensor) -> Tensor:
        return k[..., :1] * 0 + 1
