"""The laws of mechanisms: forward is weights times values, and what is hidden weighs nothing and learns nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from heedful.attention import Everything, Given, Memory, Padding, Sight
from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms import Mechanism
from heedful.blocks import Stack
from heedful.testing.attention_cases import (
    Case,
    agree,
    gradients,
    parameters,
    probe,
    queries_keys_values,
    states,
)
from heedful.testing.toy_masks import BATCH, BIASES, EXACT, HEADS, LENGTH, masks

TURN = torch.tensor([4, 2, 6, 0, 1, 5, 3])
FEW_ROWS = torch.tensor([2, 0, -1, 2])
CHUNKS = (3, 1, 1, 2)  # as which a sequence is read with a memory


def by_definition(m: Mechanism, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
    """What a mechanism's definition makes of values."""
    return m.weights(q, k, sight) @ repeat_kv(v, HEADS)


def equation(m: Mechanism, case: Case) -> None:
    """Forward is weights times values, and so are its gradients."""
    sight = case.seen()
    q, k, v = queries_keys_values(case, sight)
    agree(m(q, k, v, sight), by_definition(m, q, k, v, sight), [q, k, v, *parameters(m, sight.bias)], case)


def few_rows(m: Mechanism, case: Case) -> None:
    """The weights of a few rows are those rows of all weights."""
    sight = case.seen()
    q, k, _ = queries_keys_values(case, sight)
    leaves = [q, k, *parameters(m, sight.bias)]
    agree(m.rows(q, k, sight, FEW_ROWS), m.weights(q, k, sight)[:, :, FEW_ROWS], leaves, case)


def hidden_keys(m: Mechanism, case: Case) -> None:
    """Hidden keys weigh nothing, and neither they nor their values have a gradient."""
    sight = case.seen()
    q, k, v = queries_keys_values(case, sight)
    weights, y = m.weights(q, k, sight), m(q, k, v, sight)
    hidden = ~sight.dense.expand_as(weights)
    assert not weights[hidden].any(), case
    nobody = hidden.unflatten(1, (case.groups, -1)).all(2)  # B G T S: hidden from every head of the group
    for row in range(y.shape[2]):
        for g in gradients(y[:, :, row], (k, v)):
            assert not g[nobody[:, :, row]].any(), f"{case}: row {row}"


def hidden_values(m: Mechanism, case: Case) -> None:
    """A row sees no hidden key or value, however large."""
    sight = case.seen()
    q, k, v = (x.detach() for x in queries_keys_values(case, sight))
    before = m(q, k, v, sight)
    seen = sight.dense.expand(BATCH, HEADS, LENGTH, LENGTH)
    for column in range(LENGTH):
        k2, v2 = k.clone(), v.clone()
        k2[:, :, column], v2[:, :, column] = 1e3, 1e6
        after, blind_to = m(q, k2, v2, sight), ~seen[..., column]
        torch.testing.assert_close(after[blind_to], before[blind_to], **EXACT)


def blind_rows(m: Mechanism, case: Case, length: int = LENGTH, dtype: torch.dtype = torch.float64) -> None:
    """A row with nothing to see is zero with zero gradient, and never NaN."""
    seen = torch.rand(BATCH, HEADS, length, length, generator=torch.Generator().manual_seed(0)) < 0.5
    seen[0], seen[1, :, 3], seen[2, 2, -1] = False, False, False
    made = BIASES[case.bias]()
    sight = Given(seen).over(torch.empty(BATCH, length), bias=made if made is None else made.to(dtype))
    q, k, v = queries_keys_values(case, sight, dtype)
    y = m(q, k, v, sight)
    blind = ~seen.any(-1)
    leaves = [q, k, v, *parameters(m, sight.bias)]
    given: tuple[Tensor, ...] = ()
    for value, along in ((y, None), (m.weights(q, k, sight), None), (y, probe(y) * blind.unsqueeze(-1))):
        assert not value[blind].any(), case
        given = gradients(value, leaves, along)
        assert all(g.isfinite().all() for g in given), case
        assert not given[0][blind].any(), case
    assert not any(g.any() for g in given), case  # along blind rows alone, nothing learns anything


def one_by_one(m: Mechanism, case: Case) -> None:
    """Many sequences are answered as each of them alone."""
    sight = case.seen()
    q, k, v = queries_keys_values(case, sight)
    whole, mask = m(q, k, v, sight), masks()[case.mask]
    singles = []
    for b in range(BATCH):
        one, x = mask.take(torch.tensor([b])), torch.empty(1, LENGTH)
        seen = one.over(x, bias=sight.bias) if case.sight == "itself" else one.across(x, sight.rows, sight.bias)
        singles.append(m(q[b : b + 1], k[b : b + 1], v[b : b + 1], seen))
    agree(whole, torch.cat(singles), [q, k, v, *parameters(m, sight.bias)], case)


def future(blocks: Stack, case: Case) -> None:
    """What comes after a row changes nothing in it and has no gradient from it, where a mask hides the future."""
    x, sight = states(), case.seen()
    y = blocks(x, sight)
    for now in range(LENGTH - 1):
        (g,) = gradients(y[:, now], (x,))
        assert not g[:, now + 1 :].any(), f"{case}: what comes after {now} has a gradient"
        other = x.detach().clone()
        other[:, now + 1 :] += 1.0
        changed = blocks(other, case.seen())[:, : now + 1]
        torch.testing.assert_close(changed, y[:, : now + 1], **EXACT, msg=lambda m: f"{case}: {m}")
    if bool(sight.dense[..., -1, 0].any()):
        assert gradients(y[:, -1], (x,))[0][:, 0].any(), f"{case}: the past is not seen either"


def padding(blocks: Stack, case: Case) -> None:
    """A padded batch is answered as its sequences without padding, and padding learns nothing."""
    lengths, x, bias, extra = torch.tensor([LENGTH, 4, 0]), states(), case.seen().bias, masks()[case.mask]
    whole = blocks(x, (Padding(lengths) & extra).over(x, bias=bias))
    assert whole.isfinite().all()
    padded = torch.cat([whole[b, :n] for b, n in enumerate(lengths)])
    alone = torch.cat(
        [blocks(x[b : b + 1, :n], extra.over(x[b : b + 1, :n], bias=bias))[0] for b, n in enumerate(lengths)]
    )
    agree(padded, alone, [x, *parameters(blocks, bias)], case)
    assert not any(gradients(padded, (x,))[0][b, n:].any() for b, n in enumerate(lengths)), "padding learns"


@torch.no_grad()
def steps(blocks: Stack, case: Case, memory: Callable[[], Any] = Memory, chunks: Iterable[int] = CHUNKS) -> None:
    """Steps with a KV cache are one pass."""
    x, bias, mask, kept = states(), case.seen().bias, masks()[case.mask], memory()
    found = torch.cat([blocks(part, mask.over(part, kept, bias), kept) for part in x.split(list(chunks), 1)], 1)
    whole = blocks(x, mask.over(x, None, bias), None)
    torch.testing.assert_close(found, whole, **EXACT, msg=lambda m: f"{case} in {chunks}: {m}")


def turns(blocks: Stack, ordered: bool) -> None:
    """Without positions self-attention turns with its inputs, but where its card says that order matters to it."""
    x = states()
    sight = Everything().over(x)
    if ordered:
        x = x[:, [0, 1, 0, 1, 0, 1, 0]]  # for some it is the order of equals that matters
        assert not torch.allclose(blocks(x[:, TURN], sight), blocks(x, sight)[:, TURN]), "and yet its card says so"
        return
    agree(blocks(x[:, TURN], sight), blocks(x, sight)[:, TURN], [x, *parameters(blocks)], "turned")
