"""Mechanisms: how weights are made and applied. One paper, one file."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.attention.mechanism import Mechanism
    from heedful.attention.mechanisms.additive import Additive
    from heedful.attention.mechanisms.average import Average
    from heedful.attention.mechanisms.clustered import Clustered
    from heedful.attention.mechanisms.compressed import MemoryCompressed
    from heedful.attention.mechanisms.csalr import CSALR
    from heedful.attention.mechanisms.dpfp import DPFP
    from heedful.attention.mechanisms.general import General
    from heedful.attention.mechanisms.hard_coded import HardCoded
    from heedful.attention.mechanisms.informer import Informer
    from heedful.attention.mechanisms.linear import Linear
    from heedful.attention.mechanisms.linformer import Linformer
    from heedful.attention.mechanisms.localness import Localness
    from heedful.attention.mechanisms.low_rank import LowRank
    from heedful.attention.mechanisms.nystromformer import Nystromformer
    from heedful.attention.mechanisms.performer import Performer
    from heedful.attention.mechanisms.reformer import Reformer
    from heedful.attention.mechanisms.rfa import RFA, GatedRFA
    from heedful.attention.mechanisms.routing import Routing
    from heedful.attention.mechanisms.sac import SAC
    from heedful.attention.mechanisms.sinkhorn import Sinkhorn
    from heedful.attention.mechanisms.softmax import Dot, Scaled, Softmax
    from heedful.attention.mechanisms.synthesizer import DenseSynthesizer, FactorisedSynthesizer, RandomSynthesizer
    from heedful.attention.mechanisms.talking import TalkingHeads

__getattr__ = lazily(__name__)
__all__ = [
    "CSALR",
    "DPFP",
    "RFA",
    "SAC",
    "Additive",
    "Average",
    "Clustered",
    "DenseSynthesizer",
    "Dot",
    "FactorisedSynthesizer",
    "GatedRFA",
    "General",
    "HardCoded",
    "Informer",
    "Linear",
    "Linformer",
    "Localness",
    "LowRank",
    "Mechanism",
    "MemoryCompressed",
    "Nystromformer",
    "Performer",
    "RandomSynthesizer",
    "Reformer",
    "Routing",
    "Scaled",
    "Sinkhorn",
    "Softmax",
    "TalkingHeads",
]
