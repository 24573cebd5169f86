"""Inputs: anything becomes B T M."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.inputs.grids import GridPosition, LearnedGrid, NoGridPosition, SineGrid
    from heedful.inputs.image_input import Images, Processor, Standard, TimmProcessor, TransformersProcessor
    from heedful.inputs.patches import ConvolvedPatches, OverlappingPatches, Patches, ResNetPatches
    from heedful.inputs.positions import Learned, Network, NoPosition, Position, Sine, SineBeside, SineHalves
    from heedful.inputs.sentence_pair_input import Sentences
    from heedful.inputs.token_input import NormedTokens, Tokens
    from heedful.inputs.vector_input import Vectors

__getattr__ = lazily(__name__)
__all__ = [
    "ConvolvedPatches",
    "GridPosition",
    "Images",
    "Learned",
    "LearnedGrid",
    "Network",
    "NoGridPosition",
    "NoPosition",
    "NormedTokens",
    "OverlappingPatches",
    "Patches",
    "Position",
    "Processor",
    "ResNetPatches",
    "Sentences",
    "Sine",
    "SineBeside",
    "SineGrid",
    "SineHalves",
    "Standard",
    "TimmProcessor",
    "Tokens",
    "TransformersProcessor",
    "Vectors",
]
