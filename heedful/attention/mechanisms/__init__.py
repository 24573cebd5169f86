"""Mechanisms: how weights are made and applied. One paper, one file."""

from heedful.attention.mechanisms.additive import Additive
from heedful.attention.mechanisms.general import General
from heedful.attention.mechanisms.mechanism import Mechanism
from heedful.attention.mechanisms.softmax import Dot, Scaled, Softmax

__all__ = ["Additive", "Dot", "General", "Mechanism", "Scaled", "Softmax"]
