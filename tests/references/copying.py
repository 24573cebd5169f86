"""Weights of torch's and transformers' layers brought into ours: which parameters of ours are which of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from heedful.attention import Across, Attention, CrossAttention, Join, MultiHead
from heedful.attention.mechanisms import Softmax
from heedful.blocks import Block, CrossBlock, FeedForward, PostNormBlock, PostNormCrossBlock, Stack

Pair = tuple[Sequence[Tensor], Sequence[Tensor]]  # ours and theirs: the same rows, cut in other places


def copied(pairs: Iterable[Pair]) -> list[Pair]:
    """Writes theirs into ours."""
    pairs = list(pairs)
    with torch.no_grad():
        for ours, theirs in pairs:
            for part, piece in zip(ours, torch.cat(list(theirs)).split([len(part) for part in ours]), strict=True):
                part.copy_(piece)
    return pairs


def same(pairs: Iterable[Pair], one: Tensor, two: Tensor, more: Sequence[Pair], **tolerance: float) -> None:
    """Both values are the same, and so are the gradients of parameters and inputs, which sum over all positions."""
    torch.testing.assert_close(one, two, **tolerance)
    tolerance["atol"] *= 10
    along = torch.randn(one.shape, generator=torch.Generator().manual_seed(0), dtype=one.dtype)
    for number, (ours, theirs) in enumerate([*pairs, *more]):
        a, b = (
            torch.cat(torch.autograd.grad(y, list(leaves), along, retain_graph=True))
            for y, leaves in ((one, ours), (two, theirs))
        )
        torch.testing.assert_close(a, b, **tolerance, msg=lambda m, n=number: f"gradient of pair {n}: {m}")


def linear(ours: nn.Module, theirs: nn.Module) -> list[Pair]:
    """Weight and, where there is one, bias: of a matrix, a norm or a join."""
    names = [name for name, _ in theirs.named_parameters()]
    assert names == [name for name, _ in ours.named_parameters()]
    return [([ours.get_parameter(name)], [theirs.get_parameter(name)]) for name in names]


def attention(theirs: nn.MultiheadAttention) -> tuple[Attention, list[Pair]]:
    """Self-attention."""
    width = theirs.embed_dim
    has_bias = theirs.in_proj_bias is not None
    ours = Attention(MultiHead(width, theirs.num_heads, bias=has_bias), Softmax(), Join(width, width, bias=has_bias))
    pairs: list[Pair] = [([ours.project.to_qkv.weight], [theirs.in_proj_weight])]
    if has_bias:
        pairs.append(([ours.project.to_qkv.bias], [theirs.in_proj_bias]))
    return ours, [*pairs, *linear(ours.join, theirs.out_proj)]


def cross(theirs: nn.MultiheadAttention) -> tuple[CrossAttention, list[Pair]]:
    """Attention to another sequence, which may have another width."""
    width, has_bias = theirs.embed_dim, theirs.in_proj_bias is not None
    project = Across(width, theirs.num_heads, context=theirs.kdim, bias=has_bias)
    ours = CrossAttention(project, Softmax(), Join(width, width, bias=has_bias))
    to_q, to_kv = project.to_q, project.to_kv
    pairs: list[Pair] = [([to_q.weight, to_kv.weight], [theirs.in_proj_weight])]
    if theirs.in_proj_weight is None:
        kv = [theirs.k_proj_weight, theirs.v_proj_weight]
        pairs = [([to_q.weight], [theirs.q_proj_weight]), ([to_kv.weight], kv)]
    if has_bias:
        pairs.append(([to_q.bias, to_kv.bias], [theirs.in_proj_bias]))
    return ours, [*pairs, *linear(ours.join, theirs.out_proj)]


def feedforward(theirs: nn.Module) -> tuple[FeedForward, list[Pair]]:
    """The small network inside a layer of torch's."""
    up, down = theirs.linear1, theirs.linear2
    activation = {nn.functional.relu: nn.ReLU, nn.functional.gelu: nn.GELU}[theirs.activation]
    ours = FeedForward(up.in_features, up.out_features, activation)
    return ours, linear(ours.up, up) + linear(ours.down, down)


def encoder_layer(theirs: nn.TransformerEncoderLayer) -> tuple[Block, list[Pair]]:
    """Attention and feed-forward, in either order of norms."""
    inner, pairs = attention(theirs.self_attn)
    small, more = feedforward(theirs)
    ours = (Block if theirs.norm_first else PostNormBlock)(inner.join.out_features, inner, small)
    norms = linear(ours.norm1, theirs.norm1) + linear(ours.norm2, theirs.norm2)
    return ours, pairs + more + norms


def decoder_layer(theirs: nn.TransformerDecoderLayer) -> tuple[CrossBlock, list[Pair]]:
    """Attention to what is written, to what is read, and feed-forward."""
    inner, pairs = attention(theirs.self_attn)
    outer, others = cross(theirs.multihead_attn)
    small, more = feedforward(theirs)
    ours = (CrossBlock if theirs.norm_first else PostNormCrossBlock)(inner.join.out_features, inner, outer, small)
    norms = [pair for n in "123" for pair in linear(getattr(ours, f"norm{n}"), getattr(theirs, f"norm{n}"))]
    return ours, pairs + others + more + norms


def stack(theirs: nn.TransformerEncoder | nn.TransformerDecoder) -> tuple[Stack, list[Pair]]:
    """Layers one after the other, and a norm."""
    one = encoder_layer if isinstance(theirs, nn.TransformerEncoder) else decoder_layer
    made = [one(layer) for layer in theirs.layers]
    norm = nn.LayerNorm(theirs.norm.normalized_shape)
    return Stack([block for block, _ in made], norm), [p for _, ps in made for p in ps] + linear(norm, theirs.norm)
