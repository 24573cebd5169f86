"""Questions and what a model finds to answer them; how many are exact, with an answer and without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from heedful.looking.page import Figures, Samples
from heedful.metrics.exact_answers import judge_answer
from heedful.results import Span
from heedful.views.finding import Finding, last_attention


def answered_questions(samples: Sequence[Any], results: Sequence[Span], learned: Any) -> Samples:
    """Table of questions, their texts and answers, and what a model says."""
    rows = tuple(
        (
            one.read.question,
            one.read.context,
            " | ".join(dict.fromkeys(text for text, _ in one.read.answers)),
            said.text,
        )
        for one, said in zip(samples, results, strict=True)
    )
    right = tuple(judge_answer(one.read, said)[0] == 1 for one, (*_, said) in zip(samples, rows, strict=True))
    return Samples("Questions it never saw", ("question", "text", "answer", "said"), rows, right)


def with_and_without(model: nn.Module, samples: Sequence[Any], results: Sequence[Span], learned: Any) -> Finding:
    """How many answers are exact, of questions that have one and of those that have none."""
    right = [
        (bool(one.read.answers), judge_answer(one.read, said.text)[0])
        for one, said in zip(samples, results, strict=True)
    ]
    cards = []
    for name, some in (("with an answer", True), ("without an answer", False)):
        exact = [hit for answered, hit in right if answered is some]
        if exact:
            cards.append((name, f"{100 * sum(exact) / len(exact):.1f} %", f"of {len(exact):,} questions exact"))
    return Finding(Figures("With an answer and without", tuple(cards)), last_attention(model), "mean")
