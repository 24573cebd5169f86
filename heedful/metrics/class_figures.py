"""Class by class: precision, recall and F1 of each class, and the confusion matrix, as JSON has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

Pairs = Counter[tuple[str, str]]  # how often a class (the first) was taken for one (the second)


def precision_recall_f1(hit: int, wrong: int, missed: int) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean, F1."""
    both = 2 * hit + wrong + missed
    return hit / max(1, hit + wrong), hit / max(1, hit + missed), 2 * hit / max(1, both)


def figures(hit: int, wrong: int, missed: int) -> dict[str, float]:
    """The figures of one class by name; `count` is how often it was true."""
    named = zip(("precision", "recall", "f1"), precision_recall_f1(hit, wrong, missed), strict=True)
    return {**dict(named), "count": hit + missed}


def class_figures(pairs: Pairs, labels: Sequence[str] = ()) -> dict[str, Any]:
    """The figures of each class that was there or was said, in the order of `labels`, and what was taken for what."""
    place = {label: at for at, label in enumerate(labels)}
    known = sorted({label for pair in pairs for label in pair}, key=lambda label: (place.get(label, len(place)), label))
    at = {label: number for number, label in enumerate(known)}
    counts = np.zeros((len(known), len(known)), dtype=np.int64)
    for (truth, said), count in pairs.items():
        counts[at[truth], at[said]] = count
    hits, said_so, true = counts.diagonal().tolist(), counts.sum(0).tolist(), counts.sum(1).tolist()
    each = zip(known, hits, said_so, true, strict=True)
    classes = {label: figures(hit, said - hit, count - hit) for label, hit, said, count in each}
    return {"classes": classes, "confusion": {"labels": known, "counts": counts.tolist()}}
