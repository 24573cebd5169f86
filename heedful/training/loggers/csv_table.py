"""CSV: what a run comes to as a table, `metrics.csv` in the run's folder, a number a line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from heedful.errors import Refusal
from heedful.safe.opening import content, inside
from heedful.safe.sealed_folders import replace_file
from heedful.training.callbacks import Logger

HEADER = ["step", "split", "name", "value"]
LARGEST = 1 << 28  # bytes


class CsvTable(Logger):
    """CSV table with the columns step, split, name and value; a run that goes on drops what came after its step."""

    def __init__(self, folder: Path, step: int = 0) -> None:
        super().__init__(folder, step)
        self.path = folder / "metrics.csv"
        replace_file(self.path, as_csv([HEADER, *self.kept()]))

    def kept(self) -> list[list[str]]:
        """The lines up to the step that the run goes on at, the test's left out."""
        if not self.path.exists():
            return []
        try:
            lines = [*csv.reader(io.StringIO(content(inside(self.path), LARGEST).decode("utf-8")))][1:]
            return [line for line in lines if len(line) == 4 and int(line[0]) <= self.step and line[1] != "test"]
        except (OSError, ValueError, csv.Error) as error:
            raise Refusal(f"{self.path} cannot be read: {error}; remove it") from None

    def on_log(self, step: int, values: dict[str, float]) -> None:
        self.write(step, "train", values)

    def on_evaluate(self, step: int, split: str, scores: dict[str, float]) -> None:
        self.write(step, split, scores)

    def write(self, step: int, split: str, values: dict[str, float]) -> None:
        """Adds a line for each number."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(as_csv([[str(step), split, name, repr(float(value))] for name, value in values.items()]))


def as_csv(rows: list[list[str]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
