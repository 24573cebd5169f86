"""What a classifier takes for what: class by class, in a table, and whether it is as often right as it is sure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from heedful.looking import calibration
from heedful.looking.page import Confusion, Curves, Figures

NAMED = 12  # classes that are told one by one
LOPSIDED = 4  # times as many of one class as of another, from which on that is told as lopsided


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
