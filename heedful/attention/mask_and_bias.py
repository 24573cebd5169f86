"""Masks and biases: who may see whom, and what is added to the scores, each by one definition over positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from torch._guards import detect_fake_mode

from heedful.attention.card import Card
from heedful.errors import Refusal

if TYPE_CHECKING:
    from heedful.attention.kv_cache import Memory
    from heedful.attention.sight import Sight

LONG = 1024  # rows from which on it pays to leave out what nobody sees: below, a boolean of all pairs is faster


class Mask:
    """Which pairs may look. `sees` is the definition: positions in, bool out, at any shapes that broadcast."""

    batch: int = 1  # how many sequences it speaks of; 1: it says the same of all
    heads: int = 1  # how many heads it speaks of; 1: it says the same of all
    card: ClassVar[Card]

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """Whether the row at position i may look at the column at position j, in sequence b and head h."""
        raise NotImplementedError

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        """Positions below `length` among which all are that one of these rows sees; None: any. It helps speed alone."""
        return None

    def order(self, length: int) -> Tensor | None:
        """The order in which rows that see the same columns stand together; None: they do. It helps speed alone."""
        return None

    def gathered(self, length: int) -> Tensor | None:
        """The order of columns in which those that all rows see stand together, asked for where rows have none.

        None: they do. It helps the speed of block kernels alone.
        """
        return None

    def all_of(self) -> tuple[Mask, ...]:
        """The masks that all have to say yes."""
        return (self,)

    def turns(self) -> tuple[Mask, ...]:
        """The masks that heads take by turns: head h has the one at h modulo their number."""
        return (self,)

    def take(self, index: Tensor) -> Mask:
        """The same mask for the sequences at `index`, as when beams are reordered."""
        return self

    def place(self, b: Tensor) -> Tensor:
        """Where sequence b stands in what the mask holds: a mask that speaks of one sequence says the same of all."""
        return b * 0 if self.batch == 1 else b

    def over(
        self, x: Tensor, memory: Memory | None = None, bias: Bias | None = None, positions: Tensor | None = None
    ) -> Sight:
        """The sight of a sequence (B T or B T M) on itself and, with a memory, on all that came before.

        `positions` (B T) say where its members stand; one below 0 is padding, which nobody sees.
        """
        from heedful.attention.sight import Sight  # which is made of masks

        if memory is not None:
            return memory.sight(self, x, bias, positions)
        here = torch.arange(x.shape[1], device=x.device)[None]  # 1 T
        if positions is not None:
            lengths = counted_lengths(positions, here) if may_ask(positions) else None
            if lengths is None:
                return Sight(self, positions, positions, x.shape[0], bias)
            if int(lengths.min()) < x.shape[1]:
                from heedful.attention.plain_masks import Padding  # which is a mask

                return (self & Padding(lengths)).over(x, None, bias)
        return Sight(self, here, here, x.shape[0], bias, counted=True)

    def across(self, x: Tensor, rows: Tensor, bias: Bias | None = None, positions: Tensor | None = None) -> Sight:
        """The sight of rows standing at `rows` (B|1 T) on another sequence x (B S or B S M), at its `positions`."""
        from heedful.attention.sight import Sight  # which is made of masks

        columns = torch.arange(x.shape[1], device=x.device)[None] if positions is None else positions
        return Sight(self, rows, columns, x.shape[0], bias)

    def __and__(self, other: Mask) -> Mask:
        if isinstance(other, Everything):  # so that a causal mask stays one, and keeps the kernels' flag
            return self
        if isinstance(self, Everything):
            return other
        return Joined(self, other, torch.logical_and)

    def __or__(self, other: Mask) -> Mask:
        return Joined(self, other, torch.logical_or)

    def __invert__(self) -> Mask:
        return Inverted(self)


def may_ask(positions: Tensor) -> bool:
    """Whether a forward may go by what stands in this tensor: never where it is compiled, captured or only imagined.

    A GPU has to be waited for, which long sequences alone are worth; graphs are made, and made ready, on streams of
    their own.
    """
    if torch.compiler.is_compiling() or detect_fake_mode() is not None:
        return False
    if not positions.is_cuda:
        return True
    return positions.shape[-1] >= LONG and torch.cuda.current_stream() == torch.cuda.default_stream()


def counted_lengths(positions: Tensor, here: Tensor) -> Tensor | None:
    """How long sequences are (B) whose positions (B T) count from 0 up to padding; None where they do not."""
    lengths = (positions >= 0).sum(1)
    return lengths if torch.equal(torch.where(here < lengths[:, None], here, -1), positions) else None


class Joined(Mask):
    """Two masks as one: both (`&`) or either (`|`)."""

    def __init__(self, one: Mask, two: Mask, how: Callable[[Tensor, Tensor], Tensor]) -> None:
        for what, a, b in (("sequences", one.batch, two.batch), ("heads", one.heads, two.heads)):
            if a > 1 < b != a:
                raise Refusal(f"one mask speaks of {a} {what} and the other of {b}; make both for the same {what}")
        self.one, self.two, self.how = one, two, how
        self.batch, self.heads = max(one.batch, two.batch), max(one.heads, two.heads)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.how(self.one.sees(b, h, i, j), self.two.sees(b, h, i, j))

    def take(self, index: Tensor) -> Mask:
        return Joined(self.one.take(index), self.two.take(index), self.how)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        one, two = self.one.near(rows, length), self.two.near(rows, length)
        if self.how is torch.logical_and:
            if one is None or two is None:
                return two if one is None else one
            there = torch.zeros(length, dtype=torch.bool, device=rows.device)
            there[two] = True  # isin would compare all with all
            return one[there[one]]
        return None if one is None or two is None else torch.cat((one, two)).unique()

    def order(self, length: int) -> Tensor | None:
        one = self.one.order(length)
        return self.two.order(length) if one is None else one

    def gathered(self, length: int) -> Tensor | None:
        one = self.one.gathered(length)
        return self.two.gathered(length) if one is None else one

    def all_of(self) -> tuple[Mask, ...]:
        return self.one.all_of() + self.two.all_of() if self.how is torch.logical_and else (self,)

    def turns(self) -> tuple[Mask, ...]:
        one, two = self.one.turns(), self.two.turns()
        if 1 not in (len(one), len(two)) or len(one) == len(two):
            return (self,)
        return tuple(Joined(a, b, self.how) for a in one for b in two)


class Inverted(Mask):
    """What the other mask hides (`~`)."""

    def __init__(self, mask: Mask) -> None:
        self.mask, self.batch, self.heads = mask, mask.batch, mask.heads

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return ~self.mask.sees(b, h, i, j)

    def take(self, index: Tensor) -> Mask:
        return Inverted(self.mask.take(index))


class Everything(Mask):
    """Every row sees every column."""

    def all_of(self) -> tuple[Mask, ...]:
        return ()

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return j == j


class Causal(Mask):
    """A row sees itself and what came before."""

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return i >= j

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        return torch.arange(min(int(rows.max()) + 1, length), device=rows.device)


class Bias(nn.Module):
    """A bias on attention scores. `adds` is the definition; it may hold parameters."""

    heads: int = 1  # how many heads it speaks of; 1: it says the same of all
    batch: int = 1  # and how many sequences

    def of(self, tasks: Tensor) -> Bias:
        """The same bias for sequences of these tasks (B), by number: most biases are alike for all."""
        return self

    def take(self, index: Tensor) -> Bias:
        """The same bias for the sequences at `index`."""
        return self

    def place(self, h: Tensor) -> Tensor:
        """Where head h stands in what the bias holds: one that speaks of one head says the same of all."""
        return h * 0 if self.heads == 1 else h

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """The score to add for the row at position i and the column at position j, in sequence b and head h."""
        raise NotImplementedError
