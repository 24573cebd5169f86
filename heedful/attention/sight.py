"""Who may see whom, what is added to the scores, and where rows and columns stand: made once per forward."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.attention.lowering_cache import Made, across_forwards, once
from heedful.attention.mask_and_bias import LONG, Bias, Causal, Everything, Mask
from heedful.errors import Refusal

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

    from heedful.attention.order import Order


class Sight:
    """Mask, bias and positions of one forward, shared by every layer and lowered once to what kernels take.

    rows (B|1 T) and columns (B|1 S) are positions; a column at -1 is padding or memory not yet written, and nobody sees
    it; a row at -1 is padding, and sees nobody. `counted`: the rows are the last T of the columns 0, 1, ..., S - 1.
    `order` moves rows and columns so that sparse blocks become dense, `gathered` columns alone: a help to speed alone.
    """

    gathered: Order | None = None
    start: int = 0  # where the first row stands that is a column too, and the others behind it; 0 where unknown
    past: Tensor | None = None  # where rows stand side by side: which columns lie behind each, B 1 T S

    def __init__(
        self,
        mask: Mask,
        rows: Tensor,
        columns: Tensor,
        batch: int,
        bias: Bias | None = None,
        order: Order | None = None,
        counted: bool = False,
    ) -> None:
        for what, told in (("mask", mask.batch), ("bias", 1 if bias is None else bias.batch)):
            if told not in (1, batch):
                said = f"the {what} speaks of {told} sequences and the batch has {batch}"
                raise Refusal(f"{said}; make it for this batch")
        if bias is not None and mask.heads > 1 < bias.heads != mask.heads:
            said = f"the mask speaks of {mask.heads} heads and the bias of {bias.heads}"
            raise Refusal(f"{said}; make both for the same heads")
        self.mask, self.rows, self.columns, self.batch = mask, rows, columns, batch
        self.bias, self.order, self.counted = bias, order, counted
        self.heads = max(mask.heads, 1 if bias is None else bias.heads)
        self.seeing = False  # whether every row is known to see something
        self.laid = False  # whether the orders are the mask's own, by numbers alone
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
        return seen if self.counted else seen & (i >= 0) & (j >= 0)

    @property
    def blind(self) -> Tensor:
        """Rows with nothing to see: B|1 H|1 T|1 1."""
        return self.once("blind", lambda: ~self.dense.any(-1, keepdim=True))

    @property
    def may_be_blind(self) -> bool:
        """Whether some row may see nothing. A CPU is asked; a GPU would have to be waited for."""
        unasked = self.rows.device.type != "cpu" or torch.compiler.is_compiling()
        return not self.seeing and (unasked or self.once("may be blind", lambda: bool(self.blind.any())))

    @property
    def scores(self) -> Tensor | None:
        """The scores that the bias adds: B|1 H|1 T S."""
        bias = self.bias
        return None if bias is None else once(self._added, "scores", lambda: bias.adds(*self.indices))

    def added(self, dtype: torch.dtype) -> Tensor | None:
        """Mask and bias as the fused kernels take them: None, a boolean, or scores with -inf where hidden.

        Kernels would make scores of the boolean in every layer, so that they are made of it here, once; to learn, a
        GPU's kernels take the boolean.
        Blind rows are let see everything, for kernels differ in what they make of a row that sees nothing (one of
        CUDA's gives its values a gradient); the caller sets them to zero.
        """
        if self.is_open:
            return None
        scores, seen = self.scores, self.once("seen", lambda: self.dense if self.seeing else self.dense | self.blind)
        if scores is None:
            zeros = torch.zeros((), dtype=dtype, device=seen.device)
            boolean = seen.is_cuda and torch.is_grad_enabled()
            return seen if boolean else self.once(dtype, lambda: zeros.masked_fill(~seen, -torch.inf))
        return once(self._added, dtype, lambda: scores.to(dtype).masked_fill(~seen, -torch.inf))

    @property
    def pays_in_blocks(self) -> bool:
        """Whether flex attention should be used: on a GPU, for long sequences, where the causal flag does not say it.

        A bias that learns is left to the boolean: flex sums its gradient by atomic additions, slow and far from exact.
        """
        if not self.rows.is_cuda or min(self.rows.shape[-1], self.columns.shape[-1]) < LONG:
            return False
        learns = (
            torch.is_grad_enabled() and self.bias is not None and any(p.requires_grad for p in self.bias.parameters())
        )
        return not (self.is_causal or self.is_open or learns)

    @property
    def pays_in_parts(self) -> bool:
        """Whether parts of a long sequence should look each at what it sees alone, as a CPU has no block kernel."""
        length = self.rows.shape[-1]
        if self.rows.is_cuda or torch.compiler.is_compiling() or length < LONG:
            return False
        told = self.counted or self.start > 0
        return told and self.rows is self.columns and self.once("few", self._leaves_out)

    def _leaves_out(self) -> bool:
        """Whether rows in the middle see less than all, by what the mask says is near."""
        length = self.rows.shape[-1]
        near = [turn.near(turn.in_order[length // 2 : length // 2 + 64]) for turn in self.turns]
        return any(at is not None and len(at) < length for at in near)

    def near(self, rows: Tensor) -> Tensor | None:
        """Columns by index among which all are that one of these rows sees, by index too; None: any."""
        near = self.mask.near(rows + self.start, self.rows.shape[-1] + self.start)
        return near if near is None or not self.start else near[near >= self.start] - self.start

    @property
    def in_order(self) -> Tensor:
        """Rows by index, in the order that makes sparse blocks dense."""
        return torch.arange(self.rows.shape[-1], device=self.rows.device) if self.order is None else self.order.at

    @property
    def turns(self) -> tuple[Sight, ...]:
        """The sights that heads have by turns, each in its mask's order; one alone where a bias speaks of heads too."""
        return once(self._added, "turns", self._turns) or (self,)

    def _turns(self) -> tuple[Sight, ...]:
        masks = self.mask.turns()
        if len(masks) > 1 and (self.bias is not None or any(mask.heads > 1 for mask in masks)):
            return ()
        free = self.order is None and self.counted and self.rows is self.columns
        found = [self._laid(mask) if free else (self.order, None, False) for mask in masks]
        if len(masks) == 1 and found[0][0] is self.order and found[0][1] is None:
            return ()
        turns = []
        for number, (mask, (order, gathered, laid)) in enumerate(zip(masks, found, strict=True)):
            turn = Sight(mask, self.rows, self.columns, self.batch, self.bias, order, self.counted)
            turn.gathered, turn.laid, turn.start = gathered, laid, self.start
            turn._made = self.once(("turn", number), lambda: {})  # of the mask, for all layers
            turns.append(turn)
        return tuple(turns)

    def _laid(self, mask: Mask) -> tuple[Order | None, Order | None, bool]:
        """The orders that a mask asks for, and whether numbers alone say them; then they are found once for all."""
        from heedful.attention.mask_signature import numbers
        from heedful.attention.order import Order

        length, device, told = self.rows.shape[-1], self.rows.device, numbers(mask)

        def orders(mask: Mask) -> tuple[Order | None, Order | None]:
            if (order := mask.order(length)) is not None:
                return Order(order.to(device)), None
            return None, None if (some := mask.gathered(length)) is None else Order(some.to(device))

        found = across_forwards("orders", told, length, device, lambda: orders(told))
        return (*orders(mask), False) if found == (None, None) else (*found, True)

    @property
    def blocks(self) -> BlockMask:
        """The mask as flex attention's block mask, from the same definition, over indices instead of positions."""
        from heedful.attention.block_masks import block_mask

        return self.lasting("blocks", lambda: block_mask(self))

    @property
    def score_mod(self) -> Callable[..., Tensor] | None:
        """The bias as flex attention's score_mod."""
        from heedful.attention.block_masks import score_mod

        bias = self.bias
        return None if bias is None else once(self._added, "mod", lambda: score_mod(self, bias))

    @property
    def signature(self) -> Hashable:
        """All that the mask is made of, where that is numbers; else None."""
        from heedful.attention.mask_signature import signature

        return self.once("signature", lambda: signature(self.mask))

    def plus(self, bias: Bias) -> Sight:
        """A layer's own bias over the same mask, which is lowered once for all layers."""
        other = Sight(self.mask, self.rows, self.columns, self.batch, bias, self.order, self.counted)
        other._made, other.seeing = self._made, self.seeing
        return other

    def within(self, mask: Mask) -> Sight:
        """The same sight where another mask has to say yes too; made once per forward by whoever asks."""
        other = Sight(self.mask & mask, self.rows, self.columns, self.batch, self.bias, counted=self.counted)
        return other if self.past is None else self.behind(other)

    def behind(self, other: Sight) -> Sight:
        """Another sight of the same rows, where they have a past of their own."""
        return other

    def afresh(self) -> Sight:
        """The same sight with nothing lowered yet, and so nothing T x S kept."""
        return Sight(self.mask, self.rows, self.columns, self.batch, self.bias, self.order, self.counted)

    def at(self, rows: Tensor) -> Sight:
        """The same sight from a few rows, by index."""
        return Sight(self.mask, self.rows[:, rows], self.columns, self.batch, self.bias)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives, made by the first layer that asks and shared with the rest of this forward."""
        return once(self._made, key, make)

    def lasting(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The same beyond this forward, where it follows from numbers alone: the mask's, and the sequence's length."""
        plain = self.order is None and self.gathered is None
        if not (self.counted and self.rows is self.columns and (plain or self.laid)):
            return self.once(key, make)
        length, device = self.rows.shape[-1], self.rows.device
        return self.once(key, lambda: across_forwards((key, plain), self.mask, length, device, make))
