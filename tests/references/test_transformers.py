"""The same numbers as the transformers library: biases, rotary positions, gated feed-forward, whole attentions."""

import pytest
import torch
from torch import nn
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama import modeling_llama as llama
from transformers.models.swin.modeling_swin import SwinRelativePositionBias
from transformers.models.t5 import modeling_t5 as t5

from heedful.attention import (
    ALiBi,
    Attention,
    Blocks,
    Buckets,
    Causal,
    Everything,
    Join,
    MultiHead,
    Padding,
    Rotary,
    Sight,
    Table,
)
from heedful.attention.mechanisms import Dot, Softmax
from heedful.blocks import GatedFeedForward, RMSNorm
from tests.references.copying import copied, linear, same

CLOSE = {"rtol": 0.0, "atol": 1e-6}  # transformers computes angles, norms and weights in float32
EXACT = {"rtol": 0.0, "atol": 1e-12}
BATCH, LENGTH, WIDTH = 2, 9, 16


def draw(*shape, dtype=torch.float64):
    coins = torch.Generator().manual_seed(shape[1])
    return torch.randn(*shape, generator=coins, dtype=torch.float64).to(dtype).requires_grad_()


def far(rows=LENGTH, columns=LENGTH, past=0):
    """The sight of rows that stand `past` further on."""
    return Sight(Everything(), torch.arange(rows)[None] + past, torch.arange(columns)[None], 1)


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (16, 17), (4, 5)])
def test_buckets_are_t5s(buckets, farthest, both_ways):
    back = torch.arange(-400, 400)
    ours = Buckets(1, buckets, farthest, both_ways).bucket(back)
    theirs = t5.T5Attention._relative_position_bucket(-back, both_ways, buckets, farthest)
    assert torch.equal(ours, theirs)
    assert ours.unique().numel() > 2


def t5_attention(decoder):
    config = t5.T5Config(d_model=WIDTH, d_kv=6, num_heads=3, dropout_rate=0.0, is_decoder=decoder)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    return t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double()


@pytest.mark.parametrize("past", [0, 60])
@pytest.mark.parametrize("decoder", [True, False])
def test_the_bias_of_buckets_is_t5s(decoder, past):
    theirs, ours = t5_attention(decoder), Buckets(3, both_ways=not decoder).double()
    pairs = copied([([ours.table], [theirs.relative_attention_bias.weight])])
    one = ours.adds(*far(5, 70, past).plus(ours).indices)
    same(pairs, one, theirs.compute_bias(5, 70, past_seen_tokens=past), [], **EXACT)


@pytest.mark.parametrize("decoder", [True, False])
def test_attention_by_plain_dots_and_buckets_is_t5s(decoder):
    theirs, bias = t5_attention(decoder), Buckets(3, both_ways=not decoder).double()
    ours = Attention(MultiHead(WIDTH, 3, key=6, value=6, bias=False), Dot(), Join(18, WIDTH, bias=False)).double()
    pairs = copied(
        [
            ([ours.project.to_qkv.weight], [theirs.q.weight, theirs.k.weight, theirs.v.weight]),
            ([bias.table], [theirs.relative_attention_bias.weight]),
            *linear(ours.join, theirs.o),
        ]
    )
    x, y = draw(BATCH, LENGTH, WIDTH), draw(BATCH, LENGTH, WIDTH)
    mask = Causal() if decoder else Padding(torch.tensor([LENGTH, 5]))
    sight = mask.over(x, bias=bias)
    hidden = torch.zeros(BATCH, 1, LENGTH, LENGTH, dtype=torch.float64).masked_fill(~sight.dense, -torch.inf)
    two, _, weights = theirs(y, mask=hidden)
    same(pairs, ours(x, sight), two, [([x], [y])], **EXACT)
    q, k, _ = ours.project(x, sight)
    torch.testing.assert_close(ours.mechanism.weights(q, k, sight), weights, **EXACT)


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12, 16, 20])
def test_alibi_is_blooms(heads):
    """Bloom leaves out what is the same for a whole row: the row's own place times its slope."""
    theirs = build_alibi_tensor(torch.ones(1, LENGTH, dtype=torch.long), heads, torch.float32).view(1, heads, 1, LENGTH)
    ours = ALiBi(heads)
    bias = ours.adds(*far().plus(ours).indices)  # 1 H T S
    last = bias[:, :, -1:]
    torch.testing.assert_close(last - last[..., :1], theirs, **CLOSE)
    causal = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    weights = (w.masked_fill(~causal, -torch.inf).softmax(-1) for w in (bias, theirs.expand_as(bias)))
    torch.testing.assert_close(*weights, **CLOSE)
    assert torch.equal(bias, bias.mT), "and the same on both sides"


def llama_config(**numbers):
    config = llama.LlamaConfig(hidden_size=24, num_attention_heads=6, num_key_value_heads=2, **numbers)
    config._attn_implementation = "eager"
    return config


@pytest.mark.parametrize("base", [10_000.0, 500.0])
def test_rotary_is_llamas(base):
    config = llama_config(head_dim=8, rope_parameters={"rope_type": "default", "rope_theta": base})
    places = torch.stack((torch.arange(LENGTH), torch.arange(LENGTH) * 3 + 5))
    q, k = draw(BATCH, 6, LENGTH, 8, dtype=torch.float32), draw(BATCH, 2, LENGTH, 8, dtype=torch.float32)
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, places)
    theirs = llama.apply_rotary_pos_emb(q, k, cos, sin)
    sight = Sight(Everything(), places, places, BATCH)
    for ours, x, other in zip((Rotary(base)(x, places, sight) for x in (q, k)), (q, k), theirs, strict=True):
        same([], ours, other, [([x], [x])], rtol=0.0, atol=1e-5)


def test_attention_by_groups_and_rotary_is_llamas():
    torch.manual_seed(0)
    theirs = llama.LlamaAttention(llama_config(), layer_idx=0)
    project = MultiHead(24, 6, groups=2, position=Rotary(), bias=False)
    ours = Attention(project, Softmax(), Join(24, 24, bias=False))
    together = [theirs.q_proj.weight, theirs.k_proj.weight, theirs.v_proj.weight]
    pairs = copied([([project.to_qkv.weight], together), *linear(ours.join, theirs.o_proj)])
    x, y = draw(BATCH, LENGTH, 24, dtype=torch.float32), draw(BATCH, LENGTH, 24, dtype=torch.float32)
    turns = llama.LlamaRotaryEmbedding(theirs.config)(y, torch.arange(LENGTH)[None])
    hidden = torch.zeros(LENGTH, LENGTH).masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -torch.inf)
    two, weights = theirs(y, turns, hidden)
    sight = Causal().over(x)
    same(pairs, ours(x, sight), two, [([x], [y])], rtol=1e-5, atol=1e-5)
    q, k, _ = project(x, sight)
    torch.testing.assert_close(ours.mechanism.weights(q, k, sight), weights, **CLOSE)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 1)])
def test_the_table_of_displacements_is_swins(shape):
    theirs, ours = SwinRelativePositionBias(3, shape).double(), Table(3, shape).double()
    nn.init.normal_(theirs.relative_position_bias_table)
    pairs = copied([([ours.table], [theirs.relative_position_bias_table])])
    area = shape[0] * shape[1]
    same(pairs, far(area, area).plus(ours).scores, theirs(), [], **EXACT)
    index = ours.table.new_tensor(range(len(ours.table)))[:, None]
    counting = Table(1, shape).double()
    copied([([counting.table], [index])])
    said = far(area, area).plus(counting).scores.flatten().long()
    assert torch.equal(said, theirs.relative_position_index)


def test_the_table_starts_anew_in_every_window():
    """Windows one after the other, each seeing itself alone, are Swin's windows."""
    ours = Table(2, (2, 2)).double()
    whole = far(8, 8).plus(ours).scores
    seen = Blocks(4).over(torch.empty(1, 8)).dense
    assert torch.equal(whole[..., 4:, 4:], whole[..., :4, :4])
    assert bool(seen[0, 0, 4:, 4:].all())
    assert not seen[0, 0, 4:, :4].any()


def test_gated_feedforward_is_llamas():
    torch.manual_seed(0)
    theirs = llama.LlamaMLP(llama_config(intermediate_size=20, mlp_bias=True)).double()
    ours = GatedFeedForward(24, 20).double()
    pairs = copied(
        [
            ([ours.up.weight], [theirs.gate_proj.weight, theirs.up_proj.weight]),
            ([ours.up.bias], [theirs.gate_proj.bias, theirs.up_proj.bias]),
            *linear(ours.down, theirs.down_proj),
        ]
    )
    x, y = draw(BATCH, LENGTH, 24), draw(BATCH, LENGTH, 24)
    same(pairs, ours(x), theirs(y), [([x], [y])], **EXACT)


def test_rms_norm_is_llamas():
    theirs, ours = llama.LlamaRMSNorm(24, eps=1e-6), RMSNorm(24, eps=1e-6)
    nn.init.normal_(theirs.weight)
    pairs = copied(linear(ours, theirs))
    x, y = draw(BATCH, LENGTH, 24, dtype=torch.float32), draw(BATCH, LENGTH, 24, dtype=torch.float32)
    same(pairs, ours(x), theirs(y), [([x], [y])], rtol=1e-5, atol=1e-5)
