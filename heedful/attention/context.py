"""The context of cross-attention: the states of another sequence, and the mask that says who may see them."""

from __future__ import annotations

from torch import Tensor

from heedful.attention.mask_and_bias import Mask
from heedful.attention.projections import Across
from heedful.attention.sight import Sight


class Context:
    """The states of another sequence (B S M), the mask over them, and where they stand (B S), padding below 0.

    A context is a value: its keys and values never change. `kept()` says that it will be looked at many times, as in
    decoding, so that every projection makes its keys and values once.
    """

    def __init__(self, states: Tensor, mask: Mask, positions: Tensor | None = None) -> None:
        self.states, self.mask, self.positions = states, mask, positions
        self.made: dict[Across, tuple[Tensor, Tensor]] | None = None

    def kept(self) -> Context:
        """The same context, each projection's keys and values made once."""
        other = Context(self.states, self.mask, self.positions)
        other.made = {}
        return other

    def sight(self, sight: Sight) -> Sight:
        """The cross-sight of the rows of `sight` on this context, made once per forward."""
        return sight.once(self, lambda: self.mask.across(self.states, sight.rows, positions=self.positions))

    def answers(self, project: Across, sight: Sight) -> tuple[Tensor, Tensor]:
        """Keys and values of this context by a projection."""
        if self.made is None:
            return project.answers(self.states, sight)
        if project not in self.made:
            self.made[project] = project.answers(self.states, sight)
        return self.made[project]

    def take(self, index: Tensor) -> Context:
        """The context of the sequences at `index`, in that order."""
        positions = None if self.positions is None else self.positions.index_select(0, index)
        other = Context(self.states.index_select(0, index), self.mask.take(index), positions)
        if self.made is not None:
            other.made = {p: (k.index_select(0, index), v.index_select(0, index)) for p, (k, v) in self.made.items()}
        return other
