"""Inputs: anything becomes B T M."""

from heedful.inputs.positions import Learned, Network, NoPosition, Position, Sine, SineBeside
from heedful.inputs.sentences import Sentences
from heedful.inputs.tokens import Tokens
from heedful.inputs.vectors import Vectors

__all__ = ["Learned", "Network", "NoPosition", "Position", "Sentences", "Sine", "SineBeside", "Tokens", "Vectors"]
