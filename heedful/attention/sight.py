"""Who may see whom, what is added to the scores, and where rows and columns stand: made once per forward."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

    from heedful.attention.memory import Memory

Made = TypeVar("Made")
FLEX_FROM = 1024  # on a GPU, from this many rows and columns up, a block mask pays; below, the boolean is faster


class Mask:
    """Which pairs may look. `sees` is the definition: positions in, bool out, at any shapes that broadcast."""

    batch: int = 1  # how many sequences it speaks of; 1: it says the same of all
    heads: int = 1  # how many heads it speaks of; 1: it says the same of all

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """Whether the row at position i may look at the column at position j, in sequence b and head h."""
        raise NotImplementedError

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
        if memory is not None:
            return memory.sight(self, x, bias, positions)
        if positions is not None:
            return Sight(self, positions, positions, x.shape[0], bias)
        here = torch.arange(x.shape[1], device=x.device)[None]  # 1 T
        return Sight(self, here, here, x.shape[0], bias, counted=True)

    def across(self, x: Tensor, rows: Tensor, bias: Bias | None = None, positions: Tensor | None = None) -> Sight:
        """The sight of rows standing at `rows` (B|1 T) on another sequence x (B S or B S M), at its `positions`."""
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


class Joined(Mask):
    """Two masks as one: both (`&`) or either (`|`)."""

    def __init__(self, one: Mask, two: Mask, how: Callable[[Tensor, Tensor], Tensor]) -> None:
        for what, a, b in (("sequences", one.batch, two.batch), ("heads", one.heads, two.heads)):
            if a > 1 < b != a:
                raise ValueError(f"one mask speaks of {a} {what} and the other of {b}; make both for the same {what}")
        self.one, self.two, self.how = one, two, how
        self.batch, self.heads = max(one.batch, two.batch), max(one.heads, two.heads)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.how(self.one.sees(b, h, i, j), self.two.sees(b, h, i, j))

    def take(self, index: Tensor) -> Mask:
        return Joined(self.one.take(index), self.two.take(index), self.how)


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

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return j == j


class Causal(Mask):
    """A row sees itself and what came before."""

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return i >= j


class Bias(nn.Module):
    """What is added to a score. `adds` is the definition; it may hold parameters."""

    heads: int = 1  # how many heads it speaks of; 1: it says the same of all

    def place(self, h: Tensor) -> Tensor:
        """Where head h stands in what the bias holds: one that speaks of one head says the same of all."""
        return h * 0 if self.heads == 1 else h

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """The score to add for the row at position i and the column at position j, in sequence b and head h."""
        raise NotImplementedError


class Sight:
    """Mask, bias and positions of one forward, shared by every layer and lowered once to what kernels take.

    rows (B|1 T) and columns (B|1 S) are positions; a column at -1 is padding or memory
    not yet written, and nobody sees it.
    `counted` says that the rows are the last T of the columns 0, 1, ..., S - 1.
    `order` (T) is a permutation of rows and columns that makes sparse blocks dense, a help to block kernels alone.
    """

    def __init__(
        self,
        mask: Mask,
        rows: Tensor,
        columns: Tensor,
        batch: int,
        bias: Bias | None = None,
        order: Tensor | None = None,
        counted: bool = False,
    ) -> None:
        if mask.batch not in (1, batch):
            raise ValueError(
                f"the mask speaks of {mask.batch} sequences and the batch has {batch}; make it for this batch"
            )
        if bias is not None and mask.heads > 1 < bias.heads != mask.heads:
            said = f"the mask speaks of {mask.heads} heads and the bias of {bias.heads}"
            raise ValueError(f"{said}; make both for the same heads")
        self.mask, self.rows, self.columns, self.batch = mask, rows, columns, batch
        self.bias, self.order, self.counted = bias, order, counted
        self.heads = max(mask.heads, 1 if bias is None else bias.heads)
        self._made: dict[Hashable, object] = {}  # of mask and positions
        self._added: dict[Hashable, object] = {}  # of the bias

    @property
    def indices(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Sequence, head, row and column as tensors that broadcast: B 1 1 1, 1 H 1 1, B|1 1 T 1, B|1 1 1 S."""
        b = torch.arange(self.batch, device=self.rows.device)[:, None, None, None]
        h = torch.arange(self.heads, device=self.rows.device)[None, :, None, None]
        return b, h, self.rows[:, None, :, None], self.columns[:, None, None, :]

    @property
    def is_causal(self) -> bool:
        """Whether the fused kernels' causal flag says it all; the flag aligns top left, so rows must be the columns."""
        same = self.counted and self.rows.shape[-1] == self.columns.shape[-1]
        return type(self.mask) is Causal and self.bias is None and same

    @property
    def is_open(self) -> bool:
        """Whether every row sees every column and nothing is added, as the newest token does under a causal mask."""
        newest = type(self.mask) is Causal and self.counted and self.rows.shape[-1] == 1
        return self.bias is None and (newest or (type(self.mask) is Everything and self.counted))

    @property
    def dense(self) -> Tensor:
        """The mask as a boolean, as small as it can be said: B|1 H|1 T|1 S."""
        return self.once("dense", self._dense)

    def _dense(self) -> Tensor:
        b, h, i, j = self.indices
        seen = self.mask.sees(b, h, i, j)
        return seen if self.counted else seen & (j >= 0)

    @property
    def blind(self) -> Tensor:
        """Rows with nothing to see: B|1 H|1 T|1 1."""
        return self.once("blind", lambda: ~self.dense.any(-1, keepdim=True))

    @property
    def may_be_blind(self) -> bool:
        """Whether some row may see nothing. A CPU is asked; a GPU would have to be waited for."""
        unasked = self.rows.device.type != "cpu" or torch.compiler.is_compiling()
        return unasked or self.once("may be blind", lambda: bool(self.blind.any()))

    @property
    def scores(self) -> Tensor | None:
        """What the bias adds: B|1 H|1 T S."""
        bias = self.bias
        return None if bias is None else kept(self._added, "scores", lambda: bias.adds(*self.indices))

    def added(self, dtype: torch.dtype) -> Tensor | None:
        """Mask and bias as the fused kernels take them: None, a boolean, or scores with -inf where hidden.

        A CPU's kernels would make scores of the boolean in every layer, so that they are made of it here, once.
        Blind rows are let see everything, for kernels differ in what they make of a row that sees nothing (one of
        CUDA's gives its values a gradient); the caller sets them to zero.
        """
        if self.is_open:
            return None
        scores, seen = self.scores, self.once("seen", lambda: self.dense | self.blind)
        if scores is None:
            zeros = torch.zeros((), dtype=dtype, device=seen.device)
            return seen if seen.is_cuda else self.once(dtype, lambda: zeros.masked_fill(~seen, -torch.inf))
        return kept(self._added, dtype, lambda: scores.to(dtype).masked_fill(~seen, -torch.inf))

    @property
    def pays_in_blocks(self) -> bool:
        """Whether flex attention should be used: on a GPU, for long sequences, where the causal flag does not say it.

        A bias that learns is left to the boolean: flex sums its gradient by atomic additions, slow and far from exact.
        """
        if not self.rows.is_cuda or min(self.rows.shape[-1], self.columns.shape[-1]) < FLEX_FROM:
            return False
        learns = (
            torch.is_grad_enabled() and self.bias is not None and any(p.requires_grad for p in self.bias.parameters())
        )
        return not (self.is_causal or self.is_open or learns)

    @property
    def blocks(self) -> BlockMask:
        """The mask as flex attention's block mask, from the same definition, over indices instead of positions."""
        return self.once("blocks", self._blocks)

    def _blocks(self) -> BlockMask:
        from torch.nn.attention.flex_attention import create_block_mask

        place = self._places()

        def sees(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            at, to = place(b, i, j)
            return self.mask.sees(b, h, at, to) & (to >= 0)

        batch = max(self.mask.batch, self.rows.shape[0], self.columns.shape[0])
        sizes = (batch if batch > 1 else None, self.mask.heads if self.mask.heads > 1 else None)
        return create_block_mask(
            sees, *sizes, self.rows.shape[-1], self.columns.shape[-1], device=str(self.rows.device)
        )

    @property
    def score_mod(self) -> Callable[..., Tensor] | None:
        """The bias as flex attention's score_mod."""
        if self.bias is None:
            return None
        return kept(self._added, "mod", self._score_mod)

    def _score_mod(self) -> Callable[..., Tensor]:
        assert self.bias is not None
        place, adds = self._places(), self.bias.adds
        return lambda score, b, h, i, j: score + adds(b, h, *place(b, i, j)).to(score.dtype)

    def _places(self) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
        rows, columns = self.rows.expand(self.batch, -1), self.columns.expand(self.batch, -1)
        if self.order is not None:
            rows, columns = rows[:, self.order], columns[:, self.order]
        rows, columns = rows.contiguous(), columns.contiguous()
        return lambda b, i, j: (rows[b, i], columns[b, j])

    def plus(self, bias: Bias) -> Sight:
        """A layer's own bias over the same mask, which is lowered once for all layers."""
        other = Sight(self.mask, self.rows, self.columns, self.batch, bias, self.order, self.counted)
        other._made = self._made
        return other

    def afresh(self) -> Sight:
        """The same sight with nothing lowered yet, and so nothing T x S kept."""
        return Sight(self.mask, self.rows, self.columns, self.batch, self.bias, self.order, self.counted)

    def at(self, rows: Tensor) -> Sight:
        """The same sight from a few rows, by index."""
        return Sight(self.mask, self.rows[:, rows], self.columns, self.batch, self.bias)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives, made by the first layer that asks and shared with the rest of this forward."""
        return kept(self._made, key, make)


def kept(made: dict[Hashable, object], key: Hashable, make: Callable[[], Made]) -> Made:
    """What `make` gave when first asked for; torch.compile can follow it, and not a cached_property, which locks."""
    if key not in made:
        made[key] = make()
    return made[key]  # type: ignore[return-value]
