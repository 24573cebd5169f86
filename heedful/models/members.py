"""Several models in one: each learns from a share of its own of every batch, and the mean of their chances answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

from heedful.models.answers import AskedSpec

WITHIN = re.compile(r"members\.\d+\.")  # what stands before a member's own names


class Members(nn.Module):
    """A deep ensemble as one model (Lakshminarayanan, Pritzel and Blundell, 2017).

    What one says by chance the others do not, so that their mean is right more often, and knows better how sure it may
    be. While they learn, every sample is read by one of them; asked, all read it, at as many times the cost.
    """

    def __init__(self, spec: AskedSpec, alone: Callable[[AskedSpec], nn.Module]) -> None:
        super().__init__()
        self.spec = spec
        one = spec.model_copy(update={"members": 1})
        self.members = nn.ModuleList(alone(one) for _ in range(spec.members))

    def forward(self, *given: Tensor | None, copies: int = 1, **told: Tensor | None) -> Tensor:
        """The scores of classes that a member gives, or what the mean of all chances would be made of: B ... C.

        A batch may be there in several copies, one behind the other: those of a sample are read by one member.
        """
        if not self.training:
            return self.mean(torch.stack([member(*given, **told) for member in self.members]))
        many = len(next(one for one in (*given, *told.values()) if one is not None)) // copies
        whole: Tensor | None = None
        for at, member in enumerate(self.members):
            share = slice(at, None, len(self.members)) if at < many else slice(1)
            own = {name: part(one, share, copies) for name, one in told.items()}
            said = member(*(part(one, share, copies) for one in given), **own)
            if whole is None:
                whole = said.new_empty(copies, many, *said.shape[1:])
            if at < many:
                whole[:, share] = said.unflatten(0, (copies, -1))
            else:  # who has no sample reads another's, so that all take part wherever they are, and learns nothing
                whole = whole + 0 * said.sum()
        assert whole is not None
        return whole.flatten(0, 1)

    def mean(self, scores: Tensor) -> Tensor:
        """The scores whose chances are the mean of those of members' scores: K B ... C -> B ... C."""
        count = math.log(len(scores))
        if self.spec.several:  # each class has a chance of its own
            yes, no = (logsigmoid(sign * scores).logsumexp(0) - count for sign in (1, -1))
            return yes - no
        return log_softmax(scores, -1).logsumexp(0) - count


def part(of: Tensor | None, rows: slice, copies: int) -> Tensor | None:
    """Some rows of what is told of all, in each of its copies."""
    return None if of is None else of.unflatten(0, (copies, -1))[:, rows].flatten(0, 1).contiguous()


def alone(model: nn.Module) -> list[nn.Module]:
    """The models that answer together; one that answers alone is its own."""
    return list(model.members) if isinstance(model, Members) else [model]


def within(name: str) -> str:
    """The name that a weight, or a part, has within its member."""
    return WITHIN.sub("", name, count=1) if WITHIN.match(name) else name
