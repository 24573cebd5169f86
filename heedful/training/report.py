"""The report of a run: one page with figures, curves, samples, and where every layer and head looks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from heedful.data.collate import pick
from heedful.data.near_duplicates import Overlap
from heedful.data.splits import Splits
from heedful.looking import attends
from heedful.looking.page import Attention, Code, Curve, Curves, Figures, Samples, Section, Text, write
from heedful.metrics.metric import Metric, is_share, meaning, score_text
from heedful.tasks.work import Work
from heedful.training.prepare import Ready
from heedful.training.record import rows
from heedful.training.spec.run_spec import RunSpec
from heedful.views.finding import Finding

OF_ONE = "accuracy_"  # of one task of several


def report(ready: Ready, out: Path, scores: dict[str, float]) -> None:
    """Writes `report.html` into a run's folder."""
    run, task, model, splits = ready.run, ready.task, ready.model, ready.splits
    told = rows(out / "metrics.jsonl")
    finding = task.finding(model, splits.test)
    sections: list[Section] = [
        Text("", (run.about,)) if run.about else Text("", (f"A {run.task} run.",)),
        Figures("Scores", tuple(figure(name, value, len(splits.test), task.metrics) for name, value in scores.items())),
        Curves("Learning", curves(told, task.metrics)),
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
    return run.about.split(":")[0].rstrip(".") or run.task


def figure(name: str, value: float, count: int, metrics: Sequence[Metric[Any]]) -> tuple[str, str, str]:
    """A score as a card shows it."""
    means = f"{meaning(name, metrics)}; ".removeprefix("; ")
    among = "those of it among " if name.startswith(OF_ONE) else ""
    return name.replace("_", " "), score_text(name, value, metrics), f"{means}on {among}{count:,} unseen samples"


def overlapping(overlaps: Sequence[Overlap]) -> Figures:
    """What of the held-out samples is learned from too, so that their scores say less."""
    of = "have a near-duplicate among those to learn from: equal but for case, blanks and punctuation"
    cards = [
        (f"{one.split} {one.part}", f"{100 * one.share:.1f} %", f"{one.count:,} of {one.samples:,} {of}")
        for one in overlaps
    ]
    return Figures("What is tested and was learned from", tuple(cards))


def curves(told: list[dict[str, Any]], metrics: Sequence[Metric[Any]]) -> tuple[Curve, ...]:
    """Loss and scores over the steps."""
    train = [row for row in told if row.get("split") == "train" and "loss" in row]
    valid = [row for row in told if row.get("split") == "valid"]
    made = [Curve("training loss", tuple((row["step"], row["loss"]) for row in train), "loss", log=True)]
    for name in [key for key in (valid[0] if valid else {}) if key not in ("step", "split")]:
        words = name.replace("_", " ")
        points = tuple((row["step"], row[name]) for row in valid if name in row)
        made.append(Curve(f"{words}, validation", points, "share" if is_share(name, metrics) else words))
    return tuple(made)


def samples(task: Work, model: nn.Module, splits: Splits[Any]) -> Samples:
    """A dozen samples of the test split with the model's answers."""
    return task.show(model, pick(splits.test, 12))


def attention(task: Work, model: nn.Module, splits: Splits[Any], finding: Finding | None) -> Attention:
    """Every layer's and head's attention on a few samples of the test split."""
    chosen = sorted(pick(splits.test, 4), key=task.length, reverse=True)
    examples = tuple(task.look(model, task.as_input(sample)) for sample in chosen)
    note = "Each row is a position that looks, each column what it looks at; a row's weights sum to one."
    return Attention("Attention", examples, note, f"layer={finding.layer}&head={finding.head}" if finding else "")
