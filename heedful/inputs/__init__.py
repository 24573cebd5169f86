"""Inputs: anything becomes B T M."""

from heedful.inputs.positions import Learned, Network, NoPosition, Position, Sine, SineBeside, SineHalves
from heedful.inputs.sentences import Sentences
from heedful.inputs.tokens import NormedTokens, Tokens
from heedful.inputs.vectors import Vectors

__all__ = [
    "Learned",
    "Network",
    "NoPosition",
    "NormedTokens",
    "Position",
    "Sentences",
    "Sine",
    "SineBeside",
    "SineHalves",
    "Tokens",
    "Vectors",
]
