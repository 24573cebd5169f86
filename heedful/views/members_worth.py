"""What each member of an ensemble would have scored alone, beside what all do together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from heedful.looking.page import Figures
from heedful.metrics.metric import Metric, evaluate
from heedful.models.ensemble import alone
from heedful.pipelines.pipeline import Pipeline, unheard
from heedful.views.finding import Finding, last_attention


@dataclass(frozen=True)
class MembersWorth:
    """What members are worth, by the score to choose by; nothing for one model."""

    pipeline: Pipeline[Any]
    metrics: tuple[Metric[Any], ...]
    watch: str

    def __call__(self, model: nn.Module, samples: Sequence[Any], results: Any, learned: Any) -> Finding | None:
        if len(members := alone(model)) == 1:
            return None
        made = (evaluate(self.metrics, self.pipeline.results, one, samples, learned, unheard) for one in members)
        whole = evaluate(self.metrics, lambda *asked: results, model, samples, learned, unheard)
        names = ("all together", *(f"member {at} alone" for at in range(len(members))))
        scores = [one[self.watch] for one in (whole, *made)]
        cards = tuple((name, f"{100 * score:.1f} %", self.watch) for name, score in zip(names, scores, strict=True))
        return Finding(Figures("What members are worth", cards), last_attention(model), "mean")
