"""What a classifier takes for what: class by class, in a table, and whether it is as often right as it is sure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from heedful.looking import calibration
from heedful.looking.page import Curves, Figures, paragraph

NAMED = 12  # classes that are told one by one
READING = "Each row is a class, each column what the model said of its samples; what is right stands on the diagonal."
LOPSIDED = 4  # times as many of one class as of another, from which on that is told as lopsided


@dataclass(frozen=True)
class Confusion:
    """How often each class (a row) was taken for each (a column); what is right stands on the diagonal."""

    title: str
    labels: tuple[str, ...]
    counts: list[list[int]]

    def html(self) -> str:
        """A table whose cells are the darker the larger their share of the row."""
        head = "".join(f'<th scope="col"><span>{escape(label)}</span></th>' for label in self.labels)
        body = "".join(self._row(at) for at in range(len(self.labels)))
        table = f'<table class="confusion"><tr><th></th>{head}</tr>{body}</table>'
        return f'{paragraph(READING)}<div class="samples">{table}</div>'

    def _row(self, at: int) -> str:
        row, whole = self.counts[at], max(1, sum(self.counts[at]))
        cells = ""
        for to, count in enumerate(row):
            colour = f"var(--{'right' if to == at else 'wrong'}) {60 * (count / whole) ** 0.5:.0f}%"  # still to be read
            shade = f"background: color-mix(in srgb, {colour}, transparent)"
            cells += f'<td style="{shade}">{count:,}</td>' if count else "<td></td>"
        return f'<tr><th scope="row">{escape(self.labels[at])}</th>{cells}</tr>'


def balance(labels: Iterable[str], where: str) -> str:
    """Which share of samples is of which class, and `where` to look whether one of them was lost, if some are rare."""
    counts = Counter(labels).most_common()
    whole = sum(count for _, count in counts)
    said = [f"{label} {100 * count / whole:.1f} %" for label, count in counts]
    more = f" and {len(said) - NAMED:,} more" if len(said) > NAMED else ""
    skew = counts[0][1] / counts[-1][1]
    note = f"; lopsided, so that {counts[-1][0]!r} may be lost: look at {where}" if skew >= LOPSIDED else ""
    return f"classes   {', '.join(said[:NAMED])}{more}{note}"


def confusion_matrix(labels: Sequence[str], truth: Sequence[str], said: Sequence[str]) -> NDArray[np.int64]:
    """Confusion matrix: how often each class (a row) was taken for each (a column)."""
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    place = {label: at for at, label in enumerate(labels)}
    np.add.at(counts, ([place[one] for one in truth], [place[one] for one in said]), 1)
    return counts


def sections(
    labels: Sequence[str], counts: NDArray[np.int64], sure: Sequence[calibration.Bin]
) -> tuple[Figures, Confusion, Curves]:
    """The classes that are hardest, what rows of `counts` were taken for which columns, and the reliability diagram."""
    shares = counts.diagonal() / np.maximum(1, counts.sum(1))
    asked = np.flatnonzero(counts.sum(1)).tolist()  # of the others there is nothing to tell
    worst = sorted(asked, key=lambda at: (shares[at], at))[:NAMED]
    cards = [(labels[at], f"{100 * shares[at]:.1f} %", f"of {counts[at].sum():,} right") for at in worst]
    whole, often = counts.sum(), int(counts.sum(1).argmax())  # what a model must do better than
    plain = f"{100 * counts[often].sum() / max(1, whole):.1f} %"
    cards.append(("no model at all", plain, f"of {whole:,} right by always saying {labels[often]!r}"))
    wide = f"between how sure it is and how often right, over {whole:,} samples"
    cards.append(("expected calibration error", f"{100 * calibration.error(sure):.1f} %", wide))
    title = "Class by class" if len(asked) <= NAMED else f"The {NAMED} hardest classes"
    table = Confusion("What was taken for what", tuple(labels), counts.tolist())
    return Figures(title, tuple(cards)), table, calibration.diagram(sure)
