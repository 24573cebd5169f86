"""What a run tells: metrics and times as JSON lines, to callbacks, and as a bar or plain lines for people."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from heedful.errors import Refusal
from heedful.looking.page import Samples
from heedful.safe.json_and_tensors import read_json
from heedful.safe.opening import content, inside
from heedful.safe.plain_data import number, once
from heedful.safe.sealed_folders import replace_file
from heedful.terminal import Bars, duration, heartbeat, note, progress

if TYPE_CHECKING:
    from heedful.training.callbacks import Callback

KINDS: dict[str, tuple[type, ...]] = {"split": (str,), "device": (str,)}  # of values that are no numbers
LARGEST = 1 << 28  # bytes of a file of lines: millions of evaluations


class Result(BaseModel):
    """What a `result.json` holds at least."""

    model_config = ConfigDict(strict=True, extra="allow")
    step: int
    scores: dict[str, float]
    weights: int
    operations: float


class Record:
    """Keeps `metrics.jsonl` (only what is computed) and `timing.jsonl`, tells callbacks, and shows the way."""

    def __init__(
        self, folder: Path, steps: int, start: int, device: str = "", callbacks: Sequence[Callback] = ()
    ) -> None:
        self.folder, self.steps, self.device, self.callbacks = folder, steps, device, callbacks
        self.console = Bars()
        self.score, self.step, self.start, self.spoken, self.busy = "", start, start, time.monotonic(), 0
        cut_back(folder / "metrics.jsonl", start)
        times = cut_back(folder / "timing.jsonl", start)
        spent = times[-1].get("seconds") if times else None
        self.began = time.monotonic() - (spent if isinstance(spent, float) else 0.0)
        self.here = time.monotonic()  # when this process took its first step
        self.open = ExitStack()
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[said]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("training", total=steps, completed=start, said="")

    def __enter__(self) -> Record:
        self.bar.start()
        if not self.console.is_terminal:
            self.open.enter_context(heartbeat(self.where, self.quiet))
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.open.close()
        self.bar.stop()
        for callback in self.callbacks:
            callback.on_close(kind is None)

    def advance(self, step: int) -> None:
        """Moves the bar."""
        self.step = step
        self.bar.update(self.task, completed=step)

    def quiet(self) -> float:
        """The seconds since a line was said; none while other work says how much of it is done."""
        return 0.0 if self.busy else time.monotonic() - self.spoken

    def where(self) -> str:
        """The step that is done and how long those to come will take, at the speed so far."""
        self.spoken = time.monotonic()
        done, to_come = self.step - self.start, self.steps - self.step
        left = (self.spoken - self.here) / done * to_come if done else 0.0
        return f"step {self.step}/{self.steps}{f'  {duration(left)} left' if left else ''}"

    @contextmanager
    def working(self, what: str, total: int = 0) -> Iterator[Callable[[int], object]]:
        """A bar, or lines, of other work than steps; gives the function that hears how much more of it is done."""
        self.busy += 1
        try:
            if not self.console.is_terminal:
                with progress(what, total) as heard:
                    yield heard
                return
            task = self.bar.add_task(what, total=total or None, said="")
            yield lambda more: self.bar.advance(task, more)
            self.bar.remove_task(task)
        finally:
            self.busy, self.spoken = self.busy - 1, time.monotonic()

    def learned(self, step: int, loss: float, each: dict[str, float], rate: float, samples: float) -> None:
        """What training came to at a step, each of several losses too, and how many samples a second it took in."""
        self._write("metrics.jsonl", {"step": step, "split": "train", "loss": loss, **each, "rate": rate})
        spent = {"seconds": time.monotonic() - self.began, "samples_a_second": samples, "device": self.device}
        self._write("timing.jsonl", {"step": step, **spent})
        for callback in self.callbacks:
            callback.on_log(step, {"loss": loss, **each, "rate": rate, "samples_a_second": samples})
        said = f"loss {loss:.4f}{self.score}"
        self.bar.update(self.task, said=said)
        if not self.console.is_terminal:
            step_of, _, left = self.where().partition("  ")
            self.say("  ".join([step_of, said, f"{samples:,.0f} samples/s", *([left] if left else [])]))

    def scored(self, step: int, split: str, scores: dict[str, float]) -> None:
        """What an evaluation came to."""
        self._write("metrics.jsonl", {"step": step, "split": split, **scores})
        for callback in self.callbacks:
            callback.on_evaluate(step, split, scores)
        self.score = "".join(f"  {name} {value:.4f}" for name, value in scores.items())
        if not self.console.is_terminal:
            self.say(f"step {step}/{self.steps}  {split}{self.score}")

    def showed(self, step: int, samples: Samples) -> None:
        """A few samples with the model's answers."""
        shown = [f"{name:>10s}  {cell}" for row in samples.rows for name, cell in zip(samples.header, row, strict=True)]
        for callback in self.callbacks:
            callback.on_samples(step, samples)
        self.say("\n".join(shown))

    def say(self, line: str) -> None:
        """A line for people, above the bar."""
        self.spoken = time.monotonic()
        if self.console.is_terminal:
            self.console.print(Text(line), soft_wrap=True)
        else:
            note(line)

    def _write(self, name: str, row: dict[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


class Quiet(Record):
    """The record of a process that leaves telling to the first one."""

    def __init__(self, *_: object) -> None:
        return

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def advance(self, step: int) -> None:
        return

    @contextmanager
    def working(self, what: str, total: int = 0) -> Iterator[Callable[[int], object]]:
        yield lambda more: None

    def learned(self, step: int, loss: float, each: dict[str, float], rate: float, samples: float) -> None:
        return

    def scored(self, step: int, split: str, scores: dict[str, float]) -> None:
        return

    def showed(self, step: int, samples: Samples) -> None:
        return

    def say(self, line: str) -> None:
        return


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines, each with its step; a last line that a kill cut short is left out."""
    made: list[dict[str, Any]] = []
    inside(path)
    try:
        lines = content(path, LARGEST).decode("utf-8").splitlines() if path.exists() else []
    except ValueError as error:
        raise Refusal(f"{path} cannot be read: {error}; remove it") from None
    for at, line in enumerate(lines, 1):
        try:
            made.append(row_of(line))
        except (ValueError, RecursionError) as error:
            if at < len(lines):  # a kill cuts the last one short, and no other
                raise Refusal(f"{path}, line {at}: {error}; mend or drop it") from None
    return made


def row_of(line: str) -> dict[str, Any]:
    """The row of a line; a ValueError where it is none."""
    row = json.loads(line, object_pairs_hook=once, parse_float=number)
    if not isinstance(row, dict) or type(row.get("step")) is not int:
        raise ValueError("it is no object with a whole number for its step")
    fault = next((key for key, value in row.items() if type(value) not in KINDS.get(key, (int, float))), None)
    if fault is None and not math.isfinite(row.get("seconds", 0)):
        fault = "seconds"
    if fault is not None:
        raise ValueError(f"{fault[:60]!r} is {str(row[fault])[:60]!r}, and no run writes that")
    return row


def result(folder: Path) -> dict[str, Any]:
    """What a finished run came to: the step, the scores, how many weights, how many operations."""
    path = folder / "result.json"
    values = read_json(path)
    try:
        Result.model_validate(values)
    except ValidationError as error:
        from heedful.models.refusals import refusal

        raise Refusal(f"{path} is not whole: {refusal(error, '', Result)}; train it again") from None
    return values


def cut_back(path: Path, step: int) -> list[dict[str, Any]]:
    """Drops what was written after a step, the test too, so that no resumed run tells it twice; returns the rest."""
    kept = [row for row in rows(path) if row["step"] <= step and row.get("split") != "test"]
    replace_file(path, "".join(json.dumps(row) + "\n" for row in kept))
    return kept
