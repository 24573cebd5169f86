"""Which part a word stands for: all mechanisms, masks, biases, positions, norms, outputs, and what makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import nn

from heedful.attention import (
    AdaptiveSpan,
    ALiBi,
    Axial,
    Bias,
    BigBird,
    Blocks,
    Buckets,
    Collaborative,
    Fixed,
    GaussianBias,
    Join,
    Local,
    Local2D,
    Longformer,
    Mask,
    MultiHead,
    MultiScale,
    Rotary,
    Rotary2D,
    RotaryByParts,
    Routed,
    Strided,
    TaskBlocks,
    Window,
)
from heedful.attention import mechanisms as kinds
from heedful.attention.mechanisms import Mechanism, Softmax
from heedful.blocks import (
    ETC,
    BatchNorm,
    Block,
    BPTransformer,
    CrossBlock,
    FeedForward,
    GatedFeedForward,
    GlobalRows,
    Induced,
    LayerNorm,
    LazyFormer,
    Luna,
    Poolingformer,
    PostNormBlock,
    PostNormCrossBlock,
    Predictive,
    RealFormer,
    RMSNorm,
    ScaledBlock,
    Stack,
    StarTransformer,
)
from heedful.errors import Refusal
from heedful.inputs import (
    ConvolvedPatches,
    GridPosition,
    Learned,
    LearnedGrid,
    Network,
    NoGridPosition,
    NoPosition,
    OverlappingPatches,
    Patches,
    Position,
    ResNetPatches,
    Sine,
    SineBeside,
    SineGrid,
    SineHalves,
)
from heedful.models.words import Part, choose, named, parse
from heedful.outputs import (
    Answer,
    Attended,
    AttentionPool,
    BothPool,
    Classes,
    Each,
    First,
    FirstPool,
    LastClasses,
    MaskedToken,
    Mean,
    MeanPool,
    NextToken,
    Pooled,
    States,
    Tags,
)

MECHANISMS: dict[str, type[Mechanism]] = {
    "softmax": Softmax,
    "dot": kinds.Dot,
    "scaled": kinds.Scaled,
    "general": kinds.General,
    "additive": kinds.Additive,
    "linear": kinds.Linear,
    "performer": kinds.Performer,
    "dpfp": kinds.DPFP,
    "linformer": kinds.Linformer,
    "nystromformer": kinds.Nystromformer,
    "synthesizer_dense": kinds.DenseSynthesizer,
    "synthesizer_random": kinds.RandomSynthesizer,
    "synthesizer_factorised": kinds.FactorisedSynthesizer,
    "talking_heads": kinds.TalkingHeads,
    "reformer": kinds.Reformer,
    "sinkhorn": kinds.Sinkhorn,
    "routing": kinds.Routing,
    "localness": kinds.Localness,
    "clustered": kinds.Clustered,
    "informer": kinds.Informer,
    "rfa": kinds.RFA,
    "gated_rfa": kinds.GatedRFA,
    "csalr": kinds.CSALR,
    "memory_compressed": kinds.MemoryCompressed,
    "average": kinds.Average,
    "hard_coded": kinds.HardCoded,
    "low_rank": kinds.LowRank,
    "sac": kinds.SAC,
}
MASKS: dict[str, type[Mask]] = {  # softmax among fewer: a mechanism's name to users
    "window": Window,
    "blocks": Blocks,
    "strided": Strided,
    "fixed": Fixed,
    "longformer": Longformer,
    "bigbird": BigBird,
    "axial": Axial,
    "local": Local,
    "local2d": Local2D,
    "multiscale": MultiScale,
}
PAIRS: dict[str, type[nn.Module]] = {  # two attentions in the place of one: a mechanism's name to users
    "isab": Induced,
    "poolingformer": Poolingformer,
    "longformer_own": GlobalRows,
}
STACKS: dict[str, type[Stack]] = {
    "plain": Stack,
    "realformer": RealFormer,
    "lazyformer": LazyFormer,
    "predictive": Predictive,
    "luna": Luna,
    "star": StarTransformer,
    "bp": BPTransformer,
    "etc": ETC,
}
PROJECTIONS: dict[str, type[MultiHead]] = {"heads": MultiHead, "collaborative": Collaborative}
BIASES: dict[str, type[Bias] | None] = {
    "none": None,
    "alibi": ALiBi,
    "buckets": Buckets,
    "gaussian": GaussianBias,
    "span": AdaptiveSpan,
    "camtl": TaskBlocks,
}
POSITIONS: dict[str, type[Position]] = {
    "none": NoPosition,
    "sine": Sine,
    "sine_halves": SineHalves,
    "sine_beside": SineBeside,
    "learned": Learned,
    "network": Network,
    "rotary": NoPosition,  # turns queries and keys instead: ROTARY
    "rotary_by_parts": NoPosition,
}
ROTARY: dict[str, type[Rotary]] = {"rotary": Rotary, "rotary_by_parts": RotaryByParts, "rotary_2d": Rotary2D}
GRIDS: dict[str, type[GridPosition]] = {  # positions of what is a grid
    "none": NoGridPosition,
    "learned": LearnedGrid,
    "sine": SineGrid,
    "rotary": NoGridPosition,  # and this turns queries and keys
    "rotary_2d": NoGridPosition,
}
STEMS: dict[str, type[Patches]] = {
    "convolution": ConvolvedPatches,
    "matrix": Patches,
    "overlapping": OverlappingPatches,
    "resnet": ResNetPatches,
}
NORMS: dict[str, type[nn.Module]] = {"layer": LayerNorm, "rms": RMSNorm, "batch": BatchNorm}
CROSS_BLOCKS: dict[str, type[CrossBlock]] = {"pre": CrossBlock, "post": PostNormCrossBlock}
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": partial(nn.GELU, approximate="tanh"),
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}
POOLS: dict[str, type[Each]] = {"mean": Mean, "first": First, "attention": Attended, "each": Each}
OUTPUTS: dict[str, type[nn.Module]] = {
    "states": States,
    "pooled": Pooled,
    "classes": Classes,
    "tags": Tags,
    "answer": Answer,
    "masked": MaskedToken,
}
DECODER_OUTPUTS: dict[str, type[nn.Module]] = {
    "next": NextToken,
    "classes": LastClasses,
    "tags": Tags,
    "answer": Answer,
}
BART_OUTPUTS: dict[str, Part] = {"next": NextToken, "classes": partial(Classes, pool="last"), "answer": Answer}
IMAGE_POOLS: dict[str, type[FirstPool]] = {
    "first": FirstPool,
    "mean": MeanPool,
    "both": BothPool,
    "attention": AttentionPool,
}


def plainly(width: int, hidden: int, dropout: float = 0.0, bias: bool = True, activation: str = "relu") -> FeedForward:
    """A feed-forward with the activation that a word names."""
    return FeedForward(width, hidden, ACTIVATIONS[activation], dropout, bias)


def gated(
    width: int, hidden: int, activation: str = "silu", dropout: float = 0.0, bias: bool = True
) -> GatedFeedForward:
    """A gated feed-forward with the activation that a word names."""
    return GatedFeedForward(width, hidden, named("activation", activation, ACTIVATIONS), dropout, bias)


def scaled(first: float = 1e-5) -> Callable[..., Block]:
    """Blocks that scale what they add, by so much at first."""
    return partial(ScaledBlock, first=first)


BLOCKS: dict[str, Callable[..., Callable[..., Block]]] = {
    "pre": lambda: Block,
    "post": lambda: PostNormBlock,
    "scaled": scaled,
}


def joined(heads: int, value: int, width: int, bias: bool = True) -> Join:
    """Heads side by side, mixed by one matrix."""
    return Join(heads * value, width, bias=bias)


JOINS: dict[str, Part] = {"matrix": joined, "routed": Routed}
FEEDFORWARDS: dict[str, Part] = {word: partial(plainly, activation=word) for word in ACTIVATIONS} | {"gated": gated}


def mechanism(word: str, heads: int, width: int, length: int = 512) -> Mechanism:
    """The mechanism that a word names, for heads of `width` and sequences up to `length`.

    A mask's word means softmax within that mask, and a pair's word softmax for whoever needs one attention alone.
    """
    name = parse(word)[0]
    if name in (*MASKS, *PAIRS):
        return Softmax()
    others: dict[str, Mapping[str, object]] = {"stack": STACKS, "bias": BIASES, "project": PROJECTIONS, "join": JOINS}
    for key, table in others.items() if name not in MECHANISMS else ():
        if hasattr(table.get(name), "card"):  # a kind of attention, by another key
            raise Refusal(f"model.mechanism={word} is a word of another key; set model.{key}={word}")
    made: Mechanism = choose(
        "mechanism", word, {**MECHANISMS, **MASKS, **PAIRS}, heads=heads, width=width, length=length
    )
    return made


def mask(word: str, heads: int = 1) -> Mask | None:
    """The mask that a mechanism's word stands for, or None."""
    return choose("mechanism", word, MASKS, heads=heads) if parse(word)[0] in MASKS else None


def norm(word: str) -> Callable[[int], nn.Module]:
    """The norm that a word names, for any width; one that cannot be made is refused here."""
    choose("norm", word, NORMS, width=1)
    return lambda width: choose("norm", word, NORMS, width=width)
