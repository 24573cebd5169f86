"""Several models in one: each learns from a share of its own of every batch, and the mean of their chances answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

from heedful.models.family import Model
from heedful.models.heads_asked import AskedSpec

WITHIN = re.compile(r"^members\.\d+\.")  # what stands before a member's own names


class Members(Model):
    """A deep ensemble as one model (Lakshminarayanan, Pritzel and Blundell, 2017).

    What one says by chance the others do not, so that their mean is right more often, and knows better how sure it may
    be. While they learn, every sample is read by one of them; asked, all read it, at as many times the cost.
    """

    def __init__(self, spec: AskedSpec, alone: Callable[[AskedSpec], nn.Module]) -> None:
        super().__init__()
        self.spec = spec
        one = spec.model_copy(update={"members": 1})
        self.members = nn.ModuleList(alone(one) for _ in range(spec.members))

    def forward(self, tokens: Tensor, *given: Tensor | None, copies: int = 1, **told: Tensor | None) -> Tensor:
        """The scores of classes that a member gives, or what the mean of all chances would be made of: B ... C.

        A batch may be there in several copies, one behind the other: those of a sample are read by one member.
        """
        if not self.training:
            return self.mean(torch.stack([member(tokens, *given, **told) for member in self.members]))
        many, count = len(tokens) // copies, len(self.members)
        shares = [slice(at, None, count) if at < many else slice(1) for at in range(count)]
        made = [
            member(
                *(part(one, share, copies) for one in (tokens, *given)),
                **{name: part(one, share, copies) for name, one in told.items()},
            )
            for member, share in zip(self.members, shares, strict=True)
        ]
        return deal_back(made, shares[:many], many, copies)

    def mean(self, scores: Tensor) -> Tensor:
        """The scores whose chances are the mean of those of members' scores: K B ... C -> B ... C."""
        count = math.log(len(scores))
        if self.spec.multi_label:  # each class has a chance of its own
            yes, no = (logsigmoid(sign * scores).logsumexp(0) - count for sign in (1, -1))
            return yes - no
        return log_softmax(scores, -1).logsumexp(0) - count


def part(of: Tensor | None, rows: slice, copies: int) -> Tensor | None:
    """Some rows of what is told of all, in each of its copies."""
    return None if of is None else of.unflatten(0, (copies, -1))[:, rows].flatten(0, 1).contiguous()


def deal_back(made: list[Tensor], shares: list[slice], many: int, copies: int) -> Tensor:
    """What members made of their shares, in the order of the batch, each of its copies behind the other."""
    whole = made[0].new_empty(copies, many, *made[0].shape[1:])
    for share, said in zip(shares, made, strict=False):
        whole[:, share] = said.unflatten(0, (copies, -1))
    for said in made[many:]:  # who has no sample reads another's, so that all take part, and learns nothing
        whole = whole + 0 * said.sum()
    return whole.flatten(0, 1)


def alone(model: nn.Module) -> list[nn.Module]:
    """The models that answer together; one that answers alone is its own."""
    return list(model.members) if isinstance(model, Members) else [model]


def in_member(name: str) -> str:
    """The name that a weight, or a part, has within its member."""
    return WITHIN.sub("", name)
