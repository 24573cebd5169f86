"""Softmax over scores: the lectures' general attention layer, its scores by dot products here."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import LONG
from heedful.attention.mechanism import Mechanism, repeat_kv, safe_softmax
from heedful.attention.sight import Sight

if TYPE_CHECKING:
    from heedful.attention.per_sequence import Own

Look = Callable[[Tensor, Tensor, Tensor, Sight], Tensor]
SLOW = (torch.bfloat16, torch.float16)  # to a CPU: going back through short sequences takes it 2 to 9 times as long
PART = 256  # rows that look together on a CPU, at their neighbours alone
FAST_UP_TO = 256  # columns, as in float32; from twice as many on they are even


class SoftmaxLike(Mechanism):
    """Weights are a softmax of scores, so that a row's weights sum to one. A kind says how its scores are made."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"a dropout of {dropout} is not a share; choose one from 0 up to but not including 1")
        self.dropout = dropout

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """How well each query matches each key: B H T D, B H S D -> B H T S."""
        raise NotImplementedError

    def placed(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        """The same where it matters who stands where; what the bias adds comes on top."""
        return self.scores(q, k)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        scores = self.placed(q, repeat_kv(k, q.shape[1]), sight)
        return safe_softmax(scores if sight.scores is None else scores + sight.scores.to(scores.dtype), sight)

    def rows(self, q: Tensor, k: Tensor, sight: Sight, rows: Tensor) -> Tensor:
        return self.weights(q[:, :, rows], k, sight.at(rows))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        weights = torch.dropout(self.weights(q, k, sight), self.dropout, self.training)
        return weights @ repeat_kv(v, q.shape[1])


class Softmax(SoftmaxLike):
    """Dot products scaled by the root of their width, by fused kernels (Vaswani et al., 2017). Cost: T^2, memory T."""

    card: ClassVar = Card("Attention Is All You Need (Vaswani et al., 2017)", 2017, "T^2")

    def __init__(self, dropout: float = 0.0, scale: float | None = None) -> None:
        super().__init__(dropout)
        if scale is not None and not 0 < scale < math.inf:
            raise ValueError(f"a scale of {scale} leaves nothing of the scores; choose one above 0, or leave it out")
        self.given = scale

    def scale(self, q: Tensor) -> float:
        """What a dot product is multiplied by: the scale that was given, or one by the root of the width."""
        return 1.0 / math.sqrt(q.shape[-1]) if self.given is None else self.given

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT * self.scale(q)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        """By PyTorch's fused kernels, which never make a T x S tensor where the mask allows."""
        if is_slow(q, k):
            with torch.autocast("cpu", enabled=False):
                return Softmax.forward(self, q.float(), k.float(), v.float(), sight).to(q.dtype)
        kernel: dict[str, Any] = {"scale": self.scale(q), "dropout_p": self.dropout * self.training}
        if sight.is_causal:
            return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1], **kernel)
        if is_unmasked(q, k, sight):  # asked early, since it is so for every token that is written
            return scaled_dot_product_attention(q, k, v, **kernel)
        return self.way(sight, **kernel)(q, k, v, sight)

    def way(self, sight: Sight, scale: float, dropout_p: float) -> Look:
        """How what a sight hides is left out: by looking in pieces, where that is less work, or else by a mask."""
        if sight.rows.shape[-1] >= LONG:
            from heedful.attention.per_sequence import apart

            if each := apart(sight):
                return lambda q, k, v, _: one_by_one(q, k, v, each, partial(Softmax.forward, self))
        if sight.pays_in_blocks and not dropout_p:
            return partial(by_turns, look=partial(blockwise, scale=scale))
        if sight.pays_in_parts:
            return partial(by_turns, look=partial(in_parts, look=partial(Softmax.forward, self)))
        return partial(under_mask, scale=scale, dropout_p=dropout_p)


class Scaled(Softmax):
    """Scaled dot products (Vaswani et al., 2017) at a temperature: below 1 sharper, above 1 flatter. Cost: T^2."""

    def __init__(self, temperature: float = 1.0, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        if not 0 < temperature < math.inf:
            raise ValueError(f"a temperature of {temperature} cannot divide scores; choose one above 0")
        self.temperature = temperature

    def scale(self, q: Tensor) -> float:
        return super().scale(q) / self.temperature


class Dot(Softmax):
    """Plain dot products (Luong et al., 2015). Cost: T^2, memory T."""

    card: ClassVar = Card(
        "Effective Approaches to Attention-based Neural Machine Translation (Luong et al., 2015)", 2015, "T^2"
    )

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__(dropout, scale=1.0)


def is_slow(q: Tensor, k: Tensor) -> bool:
    """Whether a CPU's kernels for numbers of 16 bits would be slower than those for 32."""
    return q.device.type == "cpu" and q.dtype in SLOW and k.shape[2] <= FAST_UP_TO


def is_unmasked(q: Tensor, k: Tensor, sight: Sight) -> bool:
    """Whether every row sees everything and no heads share keys, so that kernels need no more than tensors."""
    return sight.is_open and q.shape[1] == k.shape[1]


def under_mask(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float, dropout_p: float) -> Tensor:
    """The kernels given a boolean, or scores to add; rows that see nothing become zero."""
    seen, grouped = sight.added(q.dtype), q.shape[1] != k.shape[1]
    if q.shape[2] == 1 and grouped and (seen is None or seen.shape[1] == 1):
        # Heads that share keys become rows over them: kernels that take a mask know of no groups.
        rows = q.unflatten(1, (k.shape[1], -1)).squeeze(3)  # B G R D
        y = scaled_dot_product_attention(rows, k, v, seen, dropout_p, scale=scale).flatten(1, 2).unsqueeze(2)
    else:
        y = scaled_dot_product_attention(q, k, v, seen, dropout_p, scale=scale, enable_gqa=grouped)
    return y if seen is None or not sight.may_be_blind else y.masked_fill(sight.blind, 0.0)


def one_by_one(q: Tensor, k: Tensor, v: Tensor, each: Sequence[Own], look: Look) -> Tensor:
    """Every sequence looks at itself alone, and padding sees nothing."""
    looked = []
    for one, two, three, (there, sight) in zip(q.split(1), k.split(1), v.split(1), each, strict=True):
        y = v.new_zeros(1, *q.shape[1:3], v.shape[3])
        if len(there):
            own = [x.index_select(2, there) for x in (one, two, three)]
            y = y.index_copy(2, there, look(own[0], own[1], own[2], sight))
        looked.append(y)
    return torch.cat(looked)


def by_turns(q: Tensor, k: Tensor, v: Tensor, sight: Sight, look: Look) -> Tensor:
    """Heads that have the same mask look together, and then stand in their places again."""
    turns, heads = sight.turns, q.shape[1]
    if len(turns) == 1:
        return look(q, k, v, turns[0])
    given = zip(*(deal_heads(x, len(turns)) for x in (q, repeat_kv(k, heads), repeat_kv(v, heads))), turns, strict=True)
    seen = [look(*one).unbind(1) for one in given]
    return torch.stack([seen[head % len(turns)][head // len(turns)] for head in range(heads)], 1)


def deal_heads(x: Tensor, turns: int) -> Sequence[Tensor]:
    """Each turn's heads; where turns come out even, gradients meet in one step, for slices each fill up with zeros."""
    if x.shape[1] % turns == 0:
        return x.unflatten(1, (-1, turns)).unbind(2)
    return [x[:, turn::turns] for turn in range(turns)]


def in_parts(q: Tensor, k: Tensor, v: Tensor, sight: Sight, look: Look) -> Tensor:
    """The same, PART rows at a time with the columns near them: never a T x S tensor where a mask sees few of them."""
    if sight.order is not None:
        q, k, v = sight.order(q), sight.order(k), sight.order(v)
    keys, values, looked = k.split(PART, 2), v.split(PART, 2), []
    found = sight.lasting(("parts", PART), partial(parts, sight))
    for some, (rows, at, blocks, columns) in zip(q.split(PART, 2), found, strict=True):
        if blocks is not None:
            near, of_them = torch.cat([keys[n] for n in blocks], 2), torch.cat([values[n] for n in blocks], 2)
        else:
            near, of_them = k.index_select(2, columns), v.index_select(2, columns)
        part = Sight(sight.mask, rows[None] + sight.start, at[None] + sight.start, sight.batch, sight.bias)
        looked.append(look(some, near, of_them, part))
    y = torch.cat(looked, 2)
    return y if sight.order is None else sight.order.undo(y)


def parts(sight: Sight) -> list[tuple[Tensor, Tensor, list[int] | None, Tensor]]:
    """Where each part's rows and columns stand, and which columns: as whole blocks, or one by one if they are few."""
    order, length, found = sight.in_order, sight.rows.shape[-1], []
    place = order.argsort()
    for rows in order.split(PART):
        near = sight.near(rows)
        columns = torch.arange(length) if near is None else place[near].sort().values
        blocks = (columns // PART).unique()
        if whole := len(blocks) * PART <= 2 * len(columns) + 2 * PART:
            columns = (blocks[:, None] * PART + torch.arange(PART)).flatten()
            columns = columns[columns < length]
        found.append((rows, order[columns], blocks.tolist() if whole else None, columns))
    return found


def blockwise(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float) -> Tensor:
    """The same by flex attention, which leaves out blocks that nobody sees."""
    if q.dtype == torch.float32:  # within a group flex sums gradients in one long row, four times farther from exact
        k, v = repeat_kv(k, q.shape[1]), repeat_kv(v, q.shape[1])
    if sight.order is not None:
        q = sight.order(q)
    if (gathered := sight.gathered or sight.order) is not None:
        k, v = gathered(k), gathered(v)
    grouped = q.shape[1] != k.shape[1]
    from heedful.attention.mask_signature import structure

    kind = sight.once("structure", lambda: sight.signature or structure(sight.mask))
    look = flex(kind, gathered is None, sight.counted, str(type(sight.bias)))
    y: Tensor = look(q, k, v, score_mod=sight.score_mod, block_mask=sight.blocks, scale=scale, enable_gqa=grouped)
    return y if sight.order is None else sight.order.undo(y)


@cache
def flex(*kind: Hashable) -> Any:
    """Flex attention, compiled for one kind of sight; eager flex would build the whole score matrix.

    The first length has a kernel of its own, the second kernel is for any length. Each kind is a function of its own,
    for torch takes whatever number differs between two calls of one function for one that may always change, a
    window's size too, and flex attention cannot say that.
    """
    from torch.nn.attention.flex_attention import flex_attention

    def look(*given: Any, **named: Any) -> Any:
        return flex_attention(*given, **named)

    look.__code__ = look.__code__.replace(co_name=f"look_{flex.cache_info().misses}")  # by which torch tells them apart
    # Every dtype, grouping and direction is a graph of its own: past torch's limit of 8 it would go on eagerly.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 64)
    return torch.compile(look, fullgraph=True)
