"""Decoding: functions that take a model and let it write, token by token or step by step."""

from heedful.decoding.answer import Answer
from heedful.decoding.beam import beam
from heedful.decoding.greedy import greedy
from heedful.decoding.roll import roll
from heedful.decoding.steps import Steps, Writer

__all__ = ["Answer", "Steps", "Writer", "beam", "greedy", "roll"]
