"""Decoding: functions that take a model and let it write, token by token or step by step."""

from heedful.decoding.beam import beam
from heedful.decoding.forecast_rollout import roll
from heedful.decoding.generate import generate
from heedful.decoding.generated_answer import Answer
from heedful.decoding.greedy import greedy
from heedful.decoding.logits_rules import Rules
from heedful.decoding.sample import sample, stream
from heedful.decoding.scoring import Judged, generate_judged, judge_answer
from heedful.decoding.search_spec import Decoding, search
from heedful.decoding.steps import Steps, begin
from heedful.models.writer import Writer

__all__ = [
    "Answer",
    "Decoding",
    "Judged",
    "Rules",
    "Steps",
    "Writer",
    "beam",
    "begin",
    "generate",
    "generate_judged",
    "greedy",
    "judge_answer",
    "roll",
    "sample",
    "search",
    "stream",
]
