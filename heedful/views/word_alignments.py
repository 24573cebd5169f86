"""Word alignments (which word was translated by which), and the alignment error rate where links are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from heedful.data.collate import pick
from heedful.data.encoded_pairs import Encoded
from heedful.looking.alignment import agreement
from heedful.looking.page import Alignment, Figures
from heedful.pipelines.translation_pipeline import TranslationLearned, align_words
from heedful.views.finding import Finding

LOOKED_AT = 500  # samples by which the error rate is told
SHOWN = 8
NOTE = "Each word with the words it was linked to by where the model looks, references in place of its answers."


def word_alignments(
    model: nn.Module, samples: Sequence[Encoded], results: Any, learned: TranslationLearned
) -> Finding | None:
    """Words linked by where the chosen layer and head looks; nothing where none was chosen."""
    if learned.gaze is None:
        return None
    gaze, shown = learned.gaze, list(align_words(model, pick(samples, LOOKED_AT), learned))
    head = "mean" if gaze.head is None else str(gaze.head)
    gold = [one for one in shown if one.gold is not None]
    said = [("words are linked by", gaze.layer, str(gaze))]
    if gold:
        rate = agreement([one.links for one in gold], [one.gold.sure for one in gold if one.gold]).error_rate
        said.append(("alignment error rate", f"{100 * rate:.1f} %", f"of the links given for {len(gold):,} samples"))
    pictures = Alignment("Alignments", tuple(shown[:SHOWN]), NOTE)
    return Finding(Figures("Word by word", tuple(said)), gaze.layer, head, (pictures,))
