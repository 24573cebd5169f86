"""The same numbers as torch.nn's own layers, values and gradients, with our parts in their place."""

import pytest
import torch
from torch import nn

from heedful.attention import Causal, Context, Everything, Given, Padding
from heedful.blocks.block import Dropout
from heedful.looking import look
from tests.references import copying
from tests.references.copying import copied, same

BATCH, LENGTH, SOURCE, WIDTH, HEADS = 3, 6, 5, 12, 3
LENGTHS, SOURCES = torch.tensor([6, 4, 1]), torch.tensor([5, 2, 3])
CLOSE = {torch.float64: {"rtol": 0.0, "atol": 1e-12}, torch.float32: {"rtol": 1e-5, "atol": 1e-6}}
DTYPES = pytest.mark.parametrize("dtype", CLOSE, ids=str)


def draw(*shape, dtype):
    coins = torch.Generator().manual_seed(len(shape) + shape[1])
    return torch.randn(*shape, generator=coins, dtype=torch.float64).to(dtype).requires_grad_()


def hidden(lengths, size):
    """Padding as torch wants it said: True where nothing may look."""
    return torch.arange(size) >= lengths[:, None]


def future(size):
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def stirred(module, dtype):
    """Parameters away from where they start: torch's biases start at zero, its norms at one."""
    torch.manual_seed(0)
    with torch.no_grad():
        for p in module.parameters():
            p.uniform_(-0.5, 0.5)
    return module.to(dtype)


@DTYPES
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", ["nothing", "padding", "future", "both", "heads"])
def test_self_attention_is_torchs(masked, bias, dtype):
    theirs = stirred(nn.MultiheadAttention(WIDTH, HEADS, bias=bias, batch_first=True), dtype)
    ours, pairs = copying.attention(theirs)
    ours, pairs = ours.to(dtype), copied(pairs)
    some = torch.rand(BATCH, HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(1)) < 0.5
    some |= torch.eye(LENGTH, dtype=torch.bool)
    padded = hidden(LENGTHS, LENGTH)
    mask, said = {
        "nothing": (Everything(), {}),
        "padding": (Padding(LENGTHS), {"key_padding_mask": padded}),
        "future": (Causal(), {"attn_mask": future(LENGTH)}),
        "both": (Causal() & Padding(LENGTHS), {"attn_mask": future(LENGTH), "key_padding_mask": padded}),
        "heads": (Given(some), {"attn_mask": ~some.flatten(0, 1)}),
    }[masked]
    x, y = (draw(BATCH, LENGTH, WIDTH, dtype=dtype) for _ in range(2))
    with look(ours) as seen:
        one = ours(x, mask.over(x))
    two, weights = theirs(y, y, y, average_attn_weights=False, **said)
    same(pairs, one, two, [([x], [y])], **CLOSE[dtype])
    torch.testing.assert_close(seen.weights("mechanism"), weights, **CLOSE[dtype])


@DTYPES
@pytest.mark.parametrize("width", [WIDTH, 7])
@pytest.mark.parametrize("masked", ["nothing", "padding", "some"])
def test_cross_attention_is_torchs(masked, width, dtype):
    theirs = stirred(nn.MultiheadAttention(WIDTH, HEADS, kdim=width, vdim=width, batch_first=True), dtype)
    ours, pairs = copying.cross(theirs)
    ours, pairs = ours.to(dtype), copied(pairs)
    some = torch.rand(LENGTH, SOURCE, generator=torch.Generator().manual_seed(1)) < 0.5
    some[:, 0] = True
    mask, said = {
        "nothing": (Everything(), {}),
        "padding": (Padding(SOURCES), {"key_padding_mask": hidden(SOURCES, SOURCE)}),
        "some": (Given(some), {"attn_mask": ~some}),
    }[masked]
    x, y = (draw(BATCH, LENGTH, WIDTH, dtype=dtype) for _ in range(2))
    s, t = (draw(BATCH, SOURCE, width, dtype=dtype) for _ in range(2))
    context = Context(s, mask)
    with look(ours) as seen:
        one = ours(x, context.sight(Everything().over(x)), context)
    two, weights = theirs(y, t, t, average_attn_weights=False, **said)
    same(pairs, one, two, [([x], [y]), ([s], [t])], **CLOSE[dtype])
    torch.testing.assert_close(seen.weights("mechanism"), weights, **CLOSE[dtype])


@DTYPES
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_block_is_torchs(norm_first, activation, dtype):
    kind = {"norm_first": norm_first, "activation": activation}
    theirs = stirred(nn.TransformerEncoderLayer(WIDTH, HEADS, 20, dropout=0.0, batch_first=True, **kind), dtype)
    ours, pairs = copying.encoder_layer(theirs)
    ours, pairs = ours.to(dtype), copied(pairs)
    x, y = (draw(BATCH, LENGTH, WIDTH, dtype=dtype) for _ in range(2))
    for mask, said in (
        (Padding(LENGTHS), {"src_key_padding_mask": hidden(LENGTHS, LENGTH)}),
        (Causal(), {"src_mask": future(LENGTH), "is_causal": True}),
        (Everything(), {}),
    ):
        same(pairs, ours(x, mask.over(x)), theirs(y, **said), [([x], [y])], **CLOSE[dtype])


@DTYPES
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_decoder_block_is_torchs(norm_first, activation, dtype):
    kind = {"norm_first": norm_first, "activation": activation}
    theirs = stirred(nn.TransformerDecoderLayer(WIDTH, HEADS, 20, dropout=0.0, batch_first=True, **kind), dtype)
    ours, pairs = copying.decoder_layer(theirs)
    ours, pairs = ours.to(dtype), copied(pairs)
    x, y = (draw(BATCH, LENGTH, WIDTH, dtype=dtype) for _ in range(2))
    s, t = (draw(BATCH, SOURCE, WIDTH, dtype=dtype) for _ in range(2))
    one = ours(x, (Causal() & Padding(LENGTHS)).over(x), Context(s, Padding(SOURCES)))
    said = {"tgt_key_padding_mask": hidden(LENGTHS, LENGTH), "memory_key_padding_mask": hidden(SOURCES, SOURCE)}
    two = theirs(y, t, tgt_mask=future(LENGTH), **said)
    same(pairs, one, two, [([x], [y]), ([s], [t])], **CLOSE[dtype])


@DTYPES
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_whole_transformer_is_torchs(norm_first, dtype):
    kind = {"dim_feedforward": 20, "dropout": 0.0, "batch_first": True, "norm_first": norm_first}
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, **kind)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
    theirs = stirred(nn.Transformer(WIDTH, HEADS, num_decoder_layers=2, custom_encoder=encoder, **kind), dtype)
    (reads, read), (writes, written) = copying.stack(theirs.encoder), copying.stack(theirs.decoder)
    reads, writes, pairs = reads.to(dtype), writes.to(dtype), copied(read + written)
    s, t = (draw(BATCH, SOURCE, WIDTH, dtype=dtype) for _ in range(2))
    x, y = (draw(BATCH, LENGTH, WIDTH, dtype=dtype) for _ in range(2))
    present = Padding(SOURCES)
    one = writes(x, (Causal() & Padding(LENGTHS)).over(x), Context(reads(s, present.over(s)), present))
    said = {"src_key_padding_mask": hidden(SOURCES, SOURCE), "tgt_key_padding_mask": hidden(LENGTHS, LENGTH)}
    two = theirs(t, y, tgt_mask=future(LENGTH), memory_key_padding_mask=hidden(SOURCES, SOURCE), **said)
    same(pairs, one, two, [([x], [y]), ([s], [t])], **CLOSE[dtype])
    assert {p for ours, _ in pairs for p in ours} == {*reads.parameters(), *writes.parameters()}, "all are compared"


def test_dropout_is_torchs_while_learning_and_nothing_at_other_times():
    x, ours, torchs = torch.ones(50), Dropout(0.3), nn.Dropout(0.3)
    made = []
    for one in (ours, torchs):
        torch.manual_seed(0)
        made.append(one(x))
    assert torch.equal(*made) and 0 < (made[0] == 0).sum() < len(x)
    assert ours.eval()(x) is x
