"""Which part a word stands for: all mechanisms, masks, biases, positions, norms, outputs, and what makes them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import nn

from heedful.attention import Bias, Join, Mask, MultiHead, Rotary
from heedful.attention.mechanisms import Mechanism, Softmax
from heedful.blocks import (
    BatchNorm,
    Block,
    CrossBlock,
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    PostNormBlock,
    PostNormCrossBlock,
    RMSNorm,
    ScaledBlock,
    Stack,
)
from heedful.errors import Refusal
from heedful.models.part_words import Part, choose, entry_named, parse
from heedful.registry import Registry

if TYPE_CHECKING:
    from heedful.inputs import GridPosition, Patches, Position

MECHANISMS: Registry[type[Mechanism]] = Registry(
    "mechanism",
    "heedful.mechanisms",
    {
        "softmax": "heedful.attention.mechanisms.softmax:Softmax",
        "dot": "heedful.attention.mechanisms.softmax:Dot",
        "scaled": "heedful.attention.mechanisms.softmax:Scaled",
        "general": "heedful.attention.mechanisms.general:General",
        "additive": "heedful.attention.mechanisms.additive:Additive",
        "linear": "heedful.attention.mechanisms.linear:Linear",
        "performer": "heedful.attention.mechanisms.performer:Performer",
        "dpfp": "heedful.attention.mechanisms.dpfp:DPFP",
        "linformer": "heedful.attention.mechanisms.linformer:Linformer",
        "nystromformer": "heedful.attention.mechanisms.nystromformer:Nystromformer",
        "synthesizer_dense": "heedful.attention.mechanisms.synthesizer:DenseSynthesizer",
        "synthesizer_random": "heedful.attention.mechanisms.synthesizer:RandomSynthesizer",
        "synthesizer_factorised": "heedful.attention.mechanisms.synthesizer:FactorisedSynthesizer",
        "talking_heads": "heedful.attention.mechanisms.talking:TalkingHeads",
        "reformer": "heedful.attention.mechanisms.reformer:Reformer",
        "sinkhorn": "heedful.attention.mechanisms.sinkhorn:Sinkhorn",
        "routing": "heedful.attention.mechanisms.routing:Routing",
        "localness": "heedful.attention.mechanisms.localness:Localness",
        "clustered": "heedful.attention.mechanisms.clustered:Clustered",
        "informer": "heedful.attention.mechanisms.informer:Informer",
        "rfa": "heedful.attention.mechanisms.rfa:RFA",
        "gated_rfa": "heedful.attention.mechanisms.rfa:GatedRFA",
        "csalr": "heedful.attention.mechanisms.csalr:CSALR",
        "memory_compressed": "heedful.attention.mechanisms.compressed:MemoryCompressed",
        "average": "heedful.attention.mechanisms.average:Average",
        "hard_coded": "heedful.attention.mechanisms.hard_coded:HardCoded",
        "low_rank": "heedful.attention.mechanisms.low_rank:LowRank",
        "sac": "heedful.attention.mechanisms.sac:SAC",
    },
)
MASKS: Registry[type[Mask]] = Registry(
    "mechanism",
    "heedful.masks",
    {  # softmax among fewer: a mechanism's name to users
        "window": "heedful.attention.masks.sparse:Window",
        "blocks": "heedful.attention.masks.blockwise:Blocks",
        "strided": "heedful.attention.masks.sparse:Strided",
        "fixed": "heedful.attention.masks.sparse:Fixed",
        "longformer": "heedful.attention.masks.longformer:Longformer",
        "bigbird": "heedful.attention.masks.bigbird:BigBird",
        "axial": "heedful.attention.masks.axial:Axial",
        "local": "heedful.attention.masks.image:Local",
        "local2d": "heedful.attention.masks.image:Local2D",
        "multiscale": "heedful.attention.masks.multi_scale:MultiScale",
    },
)
PAIRS: Registry[type[nn.Module]] = Registry(
    "mechanism",
    "heedful.pairs",
    {  # two attentions in the place of one: a mechanism's name to users
        "isab": "heedful.blocks.pairs.isab:Induced",
        "poolingformer": "heedful.blocks.pairs.poolingformer:Poolingformer",
        "longformer_own": "heedful.blocks.pairs.global_rows:GlobalRows",
    },
)
ATTENTIONS: Mapping[str, Part] = ChainMap[str, Any](MECHANISMS, MASKS, PAIRS)  # type: ignore[arg-type]  # read alone
STACKS: Registry[type[Stack]] = Registry(
    "stack",
    "heedful.stacks",
    {
        "plain": "heedful.blocks.stack:Stack",
        "realformer": "heedful.blocks.stacks.realformer:RealFormer",
        "lazyformer": "heedful.blocks.stacks.lazyformer:LazyFormer",
        "predictive": "heedful.blocks.stacks.predictive:Predictive",
        "luna": "heedful.blocks.stacks.luna:Luna",
        "star": "heedful.blocks.stacks.star:StarTransformer",
        "bp": "heedful.blocks.stacks.bp:BPTransformer",
        "etc": "heedful.blocks.stacks.etc:ETC",
    },
)
PROJECTIONS: Registry[type[MultiHead]] = Registry(
    "project",
    "heedful.projections",
    {
        "heads": "heedful.attention.projections:MultiHead",
        "collaborative": "heedful.attention.heads.collaborative:Collaborative",
    },
)
BIASES: Registry[type[Bias] | None] = Registry(
    "bias",
    "heedful.biases",
    {
        "none": None,
        "alibi": "heedful.attention.biases.alibi:ALiBi",
        "buckets": "heedful.attention.biases.t5_buckets:Buckets",
        "gaussian": "heedful.attention.biases.gaussian:GaussianBias",
        "span": "heedful.attention.biases.adaptive_span:AdaptiveSpan",
        "camtl": "heedful.attention.biases.camtl:TaskBlocks",
    },
)
POSITIONS: Registry[type[Position]] = Registry(
    "position",
    "heedful.positions",
    {
        "none": "heedful.inputs.positions:NoPosition",
        "sine": "heedful.inputs.positions:Sine",
        "sine_halves": "heedful.inputs.positions:SineHalves",
        "sine_beside": "heedful.inputs.positions:SineBeside",
        "learned": "heedful.inputs.positions:Learned",
        "network": "heedful.inputs.positions:Network",
        "rotary": "heedful.inputs.positions:NoPosition",  # turns queries and keys instead: ROTARY
        "rotary_by_parts": "heedful.inputs.positions:NoPosition",
    },
)
ROTARY: Registry[type[Rotary]] = Registry(
    "position",
    "heedful.rotary",
    {
        "rotary": "heedful.attention.rotary:Rotary",
        "rotary_by_parts": "heedful.attention.rotary:RotaryByParts",
        "rotary_2d": "heedful.attention.grid.grid_sight:Rotary2D",
    },
)
GRIDS: Registry[type[GridPosition]] = Registry(
    "position",
    "heedful.grids",
    {  # positions of what is a grid
        "none": "heedful.inputs.grids:NoGridPosition",
        "learned": "heedful.inputs.grids:LearnedGrid",
        "sine": "heedful.inputs.grids:SineGrid",
        "rotary": "heedful.inputs.grids:NoGridPosition",  # and this turns queries and keys
        "rotary_2d": "heedful.inputs.grids:NoGridPosition",
    },
)
STEMS: Registry[type[Patches]] = Registry(
    "stem",
    "heedful.stems",
    {
        "convolution": "heedful.inputs.patches:ConvolvedPatches",
        "matrix": "heedful.inputs.patches:Patches",
        "overlapping": "heedful.inputs.patches:OverlappingPatches",
        "resnet": "heedful.inputs.patches:ResNetPatches",
    },
)
NORMS: dict[str, type[nn.Module]] = {"layer": LayerNorm, "rms": RMSNorm, "batch": BatchNorm}
CROSS_BLOCKS: dict[str, type[CrossBlock]] = {"pre": CrossBlock, "post": PostNormCrossBlock}
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": partial(nn.GELU, approximate="tanh"),
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


def plainly(width: int, hidden: int, dropout: float = 0.0, bias: bool = True, activation: str = "relu") -> FeedForward:
    """A feed-forward with the activation that a word names."""
    return FeedForward(width, hidden, ACTIVATIONS[activation], dropout, bias)


def gated_feedforward(
    width: int, hidden: int, activation: str = "silu", dropout: float = 0.0, bias: bool = True
) -> GatedFeedForward:
    """A gated feed-forward with the activation that a word names."""
    return GatedFeedForward(width, hidden, entry_named("activation", activation, ACTIVATIONS), dropout, bias)


def scaled_blocks(first: float = 1e-5) -> Callable[..., Block]:
    """Blocks that scale what they add, by so much at first."""
    return partial(ScaledBlock, first=first)


BLOCKS: dict[str, Callable[..., Callable[..., Block]]] = {
    "pre": lambda: Block,
    "post": lambda: PostNormBlock,
    "scaled": scaled_blocks,
}


def join_heads(heads: int, value: int, width: int, bias: bool = True) -> Join:
    """Heads side by side, mixed by one matrix."""
    return Join(heads * value, width, bias=bias)


JOINS: Registry[Part] = Registry(
    "join", "heedful.joins", {"matrix": join_heads, "routed": "heedful.attention.heads.routed:Routed"}
)
FEEDFORWARDS: dict[str, Part] = {word: partial(plainly, activation=word) for word in ACTIVATIONS} | {
    "gated": gated_feedforward
}


def mechanism(word: str, heads: int, width: int, length: int = 512) -> Mechanism:
    """The mechanism that a word names, for heads of `width` and sequences up to `length`.

    A mask's word means softmax within that mask, and a pair's word softmax for whoever needs one attention alone.
    """
    name = parse(word)[0]
    if name in (*MASKS, *PAIRS):
        return Softmax()
    others: dict[str, Mapping[str, object]] = {"stack": STACKS, "bias": BIASES, "project": PROJECTIONS, "join": JOINS}
    for key, table in others.items() if name not in MECHANISMS else ():
        if getattr(table.get(name), "card", None) is not None:  # a kind of attention, by another key
            raise Refusal(f"model.mechanism={word} is a word of another key; set model.{key}={word}")
    made: Mechanism = choose("mechanism", word, ATTENTIONS, heads=heads, width=width, length=length)
    return made


def mask(word: str, heads: int = 1) -> Mask | None:
    """The mask that a mechanism's word stands for, or None."""
    return choose("mechanism", word, MASKS, heads=heads) if parse(word)[0] in MASKS else None


def norm(word: str) -> Callable[[int], nn.Module]:
    """The norm that a word names, for any width; one that cannot be made is refused here."""
    choose("norm", word, NORMS, width=1)
    return lambda width: choose("norm", word, NORMS, width=width)
