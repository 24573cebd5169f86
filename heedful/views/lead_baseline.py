"""Lead baseline: summaries beside the first words of their texts, which are hard to beat where news are summarised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from heedful.data.encoded_pairs import Encoded
from heedful.looking.page import Figures
from heedful.metrics import rouge
from heedful.results import Text
from heedful.views.finding import Finding


def beside_first_words(model: nn.Module, samples: Sequence[Encoded], results: Sequence[Text], learned: Any) -> Finding:
    """ROUGE of what was written, and of the first words of each text."""
    targets = [one.texts.target for one in samples]
    own = rouge.mean([rouge.rouge(said.text, target) for said, target in zip(results, targets, strict=True)])
    first = rouge.mean([rouge.rouge(lead(one), target) for one, target in zip(samples, targets, strict=True)])
    note = "of the model, and {:.1f} % of the first words of the text, as many as the summary has"
    cards = tuple(
        (name.replace("_", "-").upper(), f"{100 * own[name]:.1f} %", note.format(100 * first[name]))
        for name in rouge.NAMES
    )
    layer = [path for path, _ in model.named_modules() if path.endswith("cross")][-1]
    return Finding(Figures("Beside the first words", cards), layer, "mean")


def lead(sample: Encoded) -> str:
    """The first words of a text, as many as its summary has."""
    return " ".join(sample.texts.source.split()[: len(sample.texts.target.split())])
