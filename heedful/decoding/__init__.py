"""Decoding: functions that take a model and let it write, token by token or step by step."""

from typing import TYPE_CHECKING

from heedful.registry import lazily

if TYPE_CHECKING:
    from heedful.decoding.forecast_rollout import roll
    from heedful.decoding.generated_answer import Answer
    from heedful.decoding.logits_rules import Rules
    from heedful.decoding.sample import stream
    from heedful.decoding.scoring import Judged, generate_judged, judge_answer
    from heedful.decoding.search_spec import Decoding, search
    from heedful.decoding.steps import Steps, begin
    from heedful.models.writer import Writer

__getattr__ = lazily(__name__)
__all__ = [
    "Answer",
    "Decoding",
    "Judged",
    "Rules",
    "Steps",
    "Writer",
    "begin",
    "generate_judged",
    "judge_answer",
    "roll",
    "search",
    "stream",
]
