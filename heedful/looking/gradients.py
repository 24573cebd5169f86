"""How an answer would change with each weight of attention, without changing what is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms import Mechanism


class Felt:
    """The values and the outputs of every mechanism while it was felt; gradients of weights follow from both.

    An output is the weights times the values, so that the slope in a weight is that in the output times the value.
    """

    def __init__(self) -> None:
        self.made: dict[str, tuple[Tensor, Tensor]] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The dotted paths of the attentions that were called, in the order of their calls."""
        return tuple(self.made)

    def gradients(self, answer: Tensor) -> dict[str, Tensor]:
        """The slope of an answer, a single number, in each weight of each attention: B H T S."""
        values, outputs = zip(*self.made.values(), strict=True)
        slopes = torch.autograd.grad(answer, outputs)
        return {
            path: slope @ repeat_kv(v, slope.shape[1]).mT
            for path, v, slope in zip(self.made, values, slopes, strict=True)
        }


@contextmanager
def keep_values(model: nn.Module) -> Iterator[Felt]:
    """Keeps what each mechanism was given for values, and what it made of them; gradients must be on."""
    found = Felt()

    def keeper(path: str) -> Any:
        def keep(part: nn.Module, given: tuple[Any, ...], made: Tensor) -> None:
            found.made[path] = given[2], made

        return keep

    named = [(path.removesuffix(".mechanism"), m) for path, m in model.named_modules() if isinstance(m, Mechanism)]
    hooks = [mechanism.register_forward_hook(keeper(path)) for path, mechanism in named]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def relevance(layers: Sequence[Tensor], slopes: Sequence[Tensor]) -> Tensor:
    """How much each token's input counts for an answer, through all layers: of weights and their slopes, H T T each.

    Each layer adds what its weights pass on, heads by the mean of what speaks for the answer (Chefer et al., 2021).
    """
    whole = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype, device=layers[0].device)
    for weights, slope in zip(layers, slopes, strict=True):
        whole = whole + (weights * slope).clamp(min=0).mean(0) @ whole
    return whole
