"""Tagging by whole rows (Viterbi decoding): the likeliest tags of a sentence in which no span goes on unbegun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.data.formats.conll import GOES_ON, OUTSIDE
from heedful.pipelines.token_classification import TokenClassification, WordTags


@dataclass(frozen=True)
class ViterbiTags(TokenClassification):
    """Token classification: the likeliest row of tags in which no span goes on that was not begun (Viterbi, 1967)."""

    def follows(self, learned: WordTags) -> NDArray[np.bool_]:
        return follows(learned.labels)


def follows(labels: Sequence[str]) -> NDArray[np.bool_]:
    """Whether a tag (a column) may follow another (a row); the last row is what a sentence begins with."""
    parts = [label.partition("-") for label in (*labels, OUTSIDE)]
    goes_on = np.array([how in GOES_ON for how, _, _ in parts[:-1]])
    inside = np.array([[one[0] in ("B", "I") and one[2] == two[2] for two in parts[:-1]] for one in parts])
    begun = np.array([any(how == "B" and kind == own for how, _, kind in parts) for _, _, own in parts[:-1]])
    return inside | ~goes_on[None, :] | ~begun[None, :]  # where files have no B at all, I may begin a span
