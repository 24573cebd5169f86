"""Tagged words as people read them: spans found and missed, kind by kind, and what words were taken for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from heedful.data.formats.conll import OUTSIDE, Tagged, spans
from heedful.looking.confusion import Confusion
from heedful.looking.page import Figures, Samples
from heedful.metrics.class_figures import precision_recall_f1
from heedful.metrics.span_f1 import SpanF1
from heedful.results import Tags
from heedful.views.finding import Finding, last_attention

NAMED = 12  # kinds that are told one by one


def tagged_sentences(samples: Sequence[Any], results: Sequence[Tags], learned: Any) -> Samples:
    """Table of sentences, the spans in them, and those that a model finds."""
    rows = tuple(
        (one.read.texts[0], spans_in_words(one.read, one.read.tags), spans_in_words(one.read, said.tags))
        for one, said in zip(samples, results, strict=True)
    )
    right = tuple(truth == said for _, truth, said in rows)
    return Samples("Sentences it never saw", ("text", "spans", "said"), rows, right)


def spans_by_kind(model: nn.Module, samples: Sequence[Any], results: Sequence[Tags], learned: Any) -> Finding:
    """F1 of each kind of span, and the kinds of words that were taken for others."""
    made = SpanF1()
    made.update(samples, results, learned)
    kinds = sorted({*made.hit, *made.wrong, *made.missed}, key=lambda kind: -made.hit[kind] - made.missed[kind])[:NAMED]
    cards = []
    for kind in kinds:
        hit, missed = made.hit[kind], made.missed[kind]
        precision, recall, f1 = precision_recall_f1(hit, made.wrong[kind], missed)
        note = f"F1; precision {100 * precision:.1f} %, recall {100 * recall:.1f} % of {hit + missed:,}"
        cards.append((kind, f"{100 * f1:.1f} %", note))
    table = Confusion("What was taken for what, word by word", *count_confusions(samples, results, learned.labels))
    return Finding(Figures("Kind by kind", tuple(cards)), last_attention(model), "mean", (table,))


def count_confusions(
    samples: Sequence[Any], results: Sequence[Tags], labels: Sequence[str]
) -> tuple[tuple[str, ...], list[list[int]]]:
    """The kinds of words, and how often each (a row) was taken for each (a column)."""
    kinds = list(dict.fromkeys(tag.partition("-")[2] or OUTSIDE for tag in labels))
    counts = np.zeros((len(kinds), len(kinds)), dtype=np.int64)
    for one, said in zip(samples, results, strict=True):
        for pair in zip(one.read.tags, said.tags, strict=True):
            truth, found = (kinds.index(tag.partition("-")[2] or OUTSIDE) for tag in pair)
            counts[truth, found] += 1
    return tuple(kinds), counts.tolist()


def spans_in_words(sample: Tagged, tags: Sequence[str]) -> str:
    """The spans of a sentence as people read them."""
    return "; ".join(f"{kind}: {' '.join(sample.words[first:last])}" for kind, first, last in spans(tags)) or "none"
