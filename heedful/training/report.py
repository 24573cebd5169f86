"""The report of a run: one page with figures, curves, samples, and where every layer and head looks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from heedful.data.collate import pick
from heedful.data.near_duplicates import Overlap
from heedful.data.splits import Splits
from heedful.looking import attends
from heedful.looking.page import Attention, Code, Curve, Curves, Figures, Samples, Section, Text, write
from heedful.metrics.metric import Metric, is_share, meaning, metric_of, score_text
from heedful.tasks.work import Work
from heedful.training.prepare import Ready
from heedful.training.record import rows
from heedful.training.spec.run_spec import RunSpec
from heedful.views.finding import Finding

LEARNING = "The loss should fall and the scores on validation samples improve; where they part, it learns by heart."
OF_ONE = "accuracy_"  # of one task of several


def report(ready: Ready, out: Path, scores: dict[str, float]) -> None:
    """Writes `report.html` into a run's folder."""
    run, task, model, splits = ready.run, ready.task, ready.model, ready.splits
    finding = task.finding(model, splits.test)
    sections: list[Section] = [
        Text("", (run.about,)) if run.about else Text("", (f"A {run.task} run.",)),
        score_cards(scores, task.metrics, f"on {len(splits.test):,} unseen samples"),
        learning(out, task.metrics),
    ]
    if "rate" in run.training.tried:
        from heedful.training.trials import rate_curve

        sections += rate_curve(out)
    sections += [overlapping(ready.overlaps)] if ready.overlaps else []
    if run.compare:
        from heedful.training.ablation import beside

        sections += beside(out, scores, task.watch, partial(is_share, metrics=task.metrics))
    sections += [finding.figures, *finding.more] if finding else []
    sections += [attention(task, model, splits, finding)] if attends(model) else []
    sections += [samples(task, model, splits), Code("The whole recipe", run.text())]
    write(out / "report.html", title(run), sections)


def title(run: RunSpec) -> str:
    """The first words of what the recipe is about."""
    return re.split("[:;(]", run.about)[0].rstrip(" .") or run.task


def score_cards(scores: Mapping[str, float], metrics: Sequence[Metric[Any]], on: str = "on unseen samples") -> Figures:
    """The scores, each as a card."""
    return Figures("Scores", tuple(figure(name, value, on, metrics) for name, value in scores.items()))


def learning(out: Path, metrics: Sequence[Metric[Any]]) -> Curves:
    """Loss and scores over the steps of the run in a folder."""
    return Curves("Learning", curves(rows(out / "metrics.jsonl"), metrics), LEARNING)


def figure(name: str, value: float, on: str, metrics: Sequence[Metric[Any]]) -> tuple[str, str, str]:
    """A score as a card shows it."""
    means = f"{meaning(name, metrics)}; ".removeprefix("; ")
    among = on.replace("on ", "on those of it among ", 1) if name.startswith(OF_ONE) else on
    return name.replace("_", " "), score_text(name, value, metrics), f"{means}{among}"


def overlapping(overlaps: Sequence[Overlap]) -> Figures:
    """What of the held-out samples is learned from too, so that their scores say less."""
    of = "have a near-duplicate in the training data: equal except for case, spaces and punctuation"
    cards = [
        (f"{one.split} {one.part}", f"{100 * one.share:.1f} %", f"{one.count:,} of {one.samples:,} {of}")
        for one in overlaps
    ]
    return Figures("Test samples that were also learned from", tuple(cards))


def curves(told: list[dict[str, Any]], metrics: Sequence[Metric[Any]]) -> tuple[Curve, ...]:
    """Loss and scores over the steps."""
    train = [row for row in told if row.get("split") == "train" and "loss" in row]
    valid = [row for row in told if row.get("split") == "valid"]
    made = [Curve("training loss", tuple((row["step"], row["loss"]) for row in train), "loss", log=True)]
    for name in [key for key in (valid[0] if valid else {}) if key not in ("step", "split")]:
        words = name.replace("_", " ")
        points = tuple((row["step"], row[name]) for row in valid if name in row)
        made.append(Curve(f"{words}, validation", points, axis_of(name, metrics)))
    return tuple(made)


def axis_of(name: str, metrics: Sequence[Metric[Any]]) -> str:
    """The axis of a score's chart: shares that are better when larger have one, and every other score its own."""
    found = metric_of(name, metrics)
    return "share" if found is not None and found.share and found.more_is_better else name.replace("_", " ")


def samples(task: Work, model: nn.Module, splits: Splits[Any]) -> Samples:
    """A dozen samples of the test split with the model's answers."""
    return task.show(model, pick(splits.test, 12))


def attention(task: Work, model: nn.Module, splits: Splits[Any], finding: Finding | None) -> Attention:
    """Every layer's and head's attention on a few samples of the test split."""
    chosen = sorted(pick(splits.test, 4), key=task.length, reverse=True)
    examples = tuple(task.look(model, task.as_input(sample)) for sample in chosen)
    note = "Each row is a position that looks, and each column one that it looks at; the weights of a row sum to one."
    return Attention("Attention", examples, note, f"layer={finding.layer}&head={finding.head}" if finding else "")
