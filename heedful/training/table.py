"""Finished runs side by side: score, operations and time, as the lectures' table has them (Vaswani et al., 2017)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import Refusal
from heedful.looking.draw import check_path
from heedful.looking.page import Samples, write
from heedful.safe import outfile
from heedful.safe.opening import inside
from heedful.tasks import TASKS, task_of
from heedful.training.record import result, rows
from heedful.training.run_folder import RESULT, SPEC
from heedful.training.spec.older_runs import begun_spec


@dataclass(frozen=True)
class Row:
    """What one run came to, and what it cost."""

    run: str
    task: str
    model: str
    weights: int
    scores: dict[str, float]
    operations: float
    seconds: float
    device: str

    def cells(self, scores: Sequence[str]) -> tuple[str, ...]:
        """As people read it."""
        said = (f"{self.scores[name]:.2f}" if name in self.scores else "" for name in scores)
        minutes, seconds = divmod(round(self.seconds), 60)
        cost = f"{self.operations:.1e}", f"{minutes} min {seconds:02d} s", self.device
        return self.run, self.model, f"{self.weights:,}", *said, *cost


HEADER = ("run", "model", "weights"), ("training FLOPs", "time", "on")


def row(folder: Path) -> Row:
    """What a finished run says of itself."""
    if not (folder / SPEC).is_file():
        raise Refusal(f"{folder} is no run folder; name folders that `heedful train` has written")
    if not (folder / RESULT).is_file():
        raise Refusal(f"{folder} is not finished; go on with `heedful train ... --resume`")
    run, came = begun_spec(inside(folder / SPEC)), result(folder)
    times = rows(folder / "timing.jsonl")
    last: dict[str, Any] = times[-1] if times else {}
    try:
        return Row(
            str(folder),
            task_of(run.task).name,
            size(run.model),
            came["weights"],
            came["scores"],
            came["operations"],
            float(last.get("seconds", 0.0)),
            str(last.get("device", "")),
        )
    except (KeyError, TypeError) as error:
        raise Refusal(f"{folder / SPEC} is not whole: its model has no {error}; train it again") from None


def size(model: Mapping[str, Any]) -> str:
    """A model in a few words: its family, width and depth, or those of its parts."""
    if parts := [value for value in model.values() if isinstance(value, dict) and "family" in value]:
        return " + ".join(map(size, parts))
    blocks = model.get("depth") or sum(model.get("depths") or ())
    deep = f"{blocks}+{model.get('decoder_depth') or blocks}" if model["family"] == "transformer" else str(blocks)
    said = [f"{deep} layers"] * bool(blocks) + [f"{model.get('width')} wide"] * ("width" in model)
    return ", ".join((str(model["family"]), *said))


def table(folders: Iterable[Path]) -> tuple[tuple[str, ...], list[Row], list[tuple[str, ...]]]:
    """The header, the runs, and their cells; scores that the tasks are chosen by come first."""
    found = [row(folder) for folder in folders]
    watched = list(dict.fromkeys(TASKS[one.task].watch for one in found))
    others = dict.fromkeys(name for one in found for name in one.scores if name not in watched)
    scores = [*watched, *others]
    return (*HEADER[0], *scores, *HEADER[1]), found, [one.cells(scores) for one in found]


def markdown(header: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """The table as Markdown, its columns aligned."""
    wide = [max(len(line[at]) for line in (header, *cells)) for at in range(len(header))]
    lines = [header, ["-" * width for width in wide], *cells]
    padded = ((cell.ljust(width) for cell, width in zip(line, wide, strict=True)) for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in padded) + "\n"


ROWS = "Each row is a run, each column a key or a score of it."
ENDINGS = (".md", ".json", ".html")


def save(path: Path, header: tuple[str, ...], found: Sequence[Row], cells: Sequence[tuple[str, ...]]) -> None:
    """Writes the table as .md, .json or .html."""
    writers: dict[str, Callable[[], object]] = {
        ".md": lambda: outfile.write(path, markdown(header, cells)),
        ".json": lambda: outfile.write(path, json.dumps([vars(one) for one in found], indent=1) + "\n"),
        ".html": lambda: write(path, "Runs side by side", [Samples("", header, tuple(cells), note=ROWS)]),
    }
    check_path(path, ENDINGS)
    writers[path.suffix.lower()]()
