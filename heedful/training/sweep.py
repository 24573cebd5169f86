"""Sweeps (hyperparameter search over a grid): runs of a recipe side by side, each in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import fmean, median, stdev

from heedful.errors import Refusal
from heedful.tasks import task_of
from heedful.terminal import SILENCE, note
from heedful.training.record import result, rows
from heedful.training.run_folder import RESULT, SPEC
from heedful.training.spec import recipes

OUTER = re.compile(r",(?![^\[({]*[\])}])")  # commas between values, not those within one
SPAN = re.compile(r"(-?\d+)\.\.(-?\d+)")  # 1..5
MOST = 1_000  # runs
LONGEST = 120  # characters of the name of a folder
EVERY = 0.5  # seconds between two looks at what runs
STOPPED = "stopped"  # a file in the folder of a run that fell behind, and says so
SEED = "seed"


@dataclass
class Trial:
    """One run of a sweep: the keys that are its own, its folder, and the process that trains it."""

    keys: tuple[str, ...]
    folder: Path
    log: Path
    process: subprocess.Popen[bytes] | None = None
    place: int = 0  # among those that run side by side
    fault: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether it came to its end."""
        return (self.folder / RESULT).is_file()

    @property
    def is_behind(self) -> bool:
        """Whether it was stopped since others were better."""
        return (self.folder / STOPPED).is_file()

    @property
    def setting(self) -> tuple[str, ...]:
        """Its keys without the seed: runs that differ in that alone have a mean and a spread."""
        return tuple(key for key in self.keys if not key.startswith(f"{SEED}="))

    def scores(self, watch: str) -> dict[int, float]:
        """Its scores on validation data by step."""
        told = rows(self.folder / "metrics.jsonl") if self.folder.is_dir() else []
        return {row["step"]: row[watch] for row in told if row.get("split") == "valid" and watch in row}


@dataclass
class Sweep:
    """Runs of one recipe: as many at once as there is room for, each begun, gone on with or left as it is."""

    recipe: str
    fixed: Sequence[str]
    trials: Sequence[Trial]
    device: str | None
    jobs: int
    patience: int = 0  # scores from which on what is behind the middle of the others is stopped; 0: never
    said: Callable[[str], object] = note
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(self) -> None:
        """Trains all of them; a second call goes on where the first was stopped."""
        waiting = [one for one in self.trials if not (one.is_finished or one.is_behind)]
        running: list[Trial] = []
        try:
            self.spoken = time.monotonic()
            while waiting or running:
                free = sorted({*range(self.jobs)} - {one.place for one in running})
                for place in free[: len(waiting)]:
                    running.append(self.start(waiting.pop(0), place))
                time.sleep(EVERY)
                self.stop_behind(running)
                if time.monotonic() - self.spoken > SILENCE:
                    self.say(f"{len(running)} run, {len(waiting)} wait: {', '.join(map(where, running))}")
                for one in [one for one in running if one.process is not None and one.process.poll() is not None]:
                    running.remove(one)
                    self.tell(one)
        finally:
            for one in running:
                if one.process is not None:
                    one.process.send_signal(signal.SIGTERM)  # saves, and can be gone on with
            for one in running:
                if one.process is not None:
                    one.process.wait()

    def start(self, trial: Trial, place: int) -> Trial:
        """Begins a run, or goes on with it, on cores or on the GPU of its own."""
        command = [sys.executable, "-m", "heedful", "train", self.recipe, *self.fixed, *trial.keys]
        command += ["--out", str(trial.folder), *(["--device", self.device] if self.device else [])]
        command += ["--resume"] if (trial.folder / SPEC).exists() else []
        own = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // self.jobs))}
        own |= {"CUDA_VISIBLE_DEVICES": gpus()[place % len(gpus())]} if self.device != "cpu" and gpus() else {}
        trial.log.parent.mkdir(parents=True, exist_ok=True)
        with trial.log.open("ab") as log:
            trial.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**self.environment, **own}
            )
        trial.place = place
        return trial

    def stop_behind(self, running: Sequence[Trial]) -> None:
        """Stops what is worse at its newest score than the middle of the others at that step (median stopping)."""
        if not self.patience:
            return
        watch = watched_score(self.recipe)
        known = {id(one): one.scores(watch) for one in self.trials}
        for one in running:
            mine = known[id(one)]
            if len(mine) < self.patience or one.process is None or one.is_behind:
                continue
            step = max(mine)
            others = [scores[step] for key, scores in known.items() if key != id(one) and step in scores]
            if len(others) > 1 and max(mine.values()) < median(others):
                (one.folder / STOPPED).write_text(f"{step}\n", encoding="ascii")
                one.process.send_signal(signal.SIGTERM)

    def tell(self, trial: Trial) -> None:
        """Says what became of a run."""
        name, count = trial.folder.name, sum(one.is_finished or one.is_behind for one in self.trials)
        if trial.is_finished:
            how = ", ".join(f"{key} {value:.4f}" for key, value in result(trial.folder)["scores"].items())
        elif trial.is_behind:
            how = "stopped, for others are ahead"
        else:
            lines = trial.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            trial.fault = how = lines[-1] if lines else "it said nothing"
        self.say(f"{count}/{len(self.trials)}  {name}  {how}")

    def say(self, line: str) -> None:
        """Says a line, and when it did."""
        self.said(line)
        self.spoken = time.monotonic()


def where(trial: Trial) -> str:
    """A run and the last of its scored steps."""
    told = rows(trial.folder / "metrics.jsonl") if trial.folder.is_dir() else []
    return f"{trial.folder.name} at step {told[-1]['step'] if told else 0}"


def gpus() -> list[str]:
    """The GPUs that runs can be given, one each."""
    import torch

    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return given.split(",")[:count] if given else [str(at) for at in range(count)]


def watched_score(recipe: str) -> str:
    """The score that a recipe's runs are chosen by; more is better."""
    return task_of(str(recipes.values(recipe)["task"])).watch


def trials(recipe: str, changes: Sequence[str], out: Path) -> tuple[list[str], list[Trial]]:
    """The keys that all runs share, and the runs: one for each combination of the values of the others."""
    fixed: list[tuple[str, list[str]]] = []
    varied: list[tuple[str, list[str]]] = []
    for change in changes:
        key, _, value = change.partition("=")
        values = values_of(value)
        (varied if len(values) > 1 else fixed).append((key, values))
    if not varied:
        raise Refusal("nothing is varied; give a key with several values, such as training.rate=0.001,0.003 seed=1..3")
    shared = [f"{key}={values[0]}" for key, values in fixed]
    grid = [tuple(f"{key}={value}" for (key, _), value in zip(varied, one, strict=True))
            for one in product(*(values for _, values in varied))]  # fmt: skip
    if len(grid) > MOST:
        raise Refusal(f"{len(grid):,} runs are more than {MOST:,}; give fewer values")
    for keys in grid:
        recipes.resolve(recipe, [*shared, *keys])  # what is wrong is said before the first run
    names = [re.sub(r"[^\w.=+-]", "-", "_".join(short_names(keys)))[:LONGEST] for keys in grid]
    if len({*names}) < len(names):
        names = [f"{number}_{name}" for number, name in enumerate(names, 1)]
    made = [Trial(keys, out / name, out / "logs" / f"{name}.txt") for keys, name in zip(grid, names, strict=True)]
    return shared, made


def short_names(keys: Sequence[str]) -> list[str]:
    """Keys by the last part of their names, with their values."""
    return [f"{key.partition('=')[0].rpartition('.')[2]}={key.partition('=')[2]}" for key in keys]


def values_of(text: str) -> list[str]:
    """The values of `a,b,c` or `1..5`; a list in brackets is one value."""
    found: list[str] = []
    for part in OUTER.split(text) if not text.startswith(("[", "{")) else [text]:
        span = SPAN.fullmatch(part.strip())
        if span and int(span[2]) - int(span[1]) >= MOST:
            raise Refusal(f"{part} are more than {MOST:,} values; give fewer")
        found += [str(n) for n in range(int(span[1]), int(span[2]) + 1)] if span else [part.strip()]
    return list(dict.fromkeys(found))


def table_of(trials: Sequence[Trial], watch: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A line for each setting: how many runs, and of each score the mean and the spread over seeds; the best first."""
    settings: dict[tuple[str, ...], list[Trial]] = {}
    for one in trials:
        settings.setdefault(one.setting, []).append(one)
    scores = {key: [result(one.folder)["scores"] for one in some if one.is_finished] for key, some in settings.items()}
    names = list(dict.fromkeys([watch, *(name for some in scores.values() for one in some for name in one)]))
    order = sorted(settings, key=lambda key: -fmean([one[watch] for one in scores[key]] or [float("-inf")]))
    lines = []
    for key in order:
        cells = [spread([one[name] for one in scores[key] if name in one]) for name in names]
        state = f"{len(scores[key])} of {len(settings[key])}"
        behind = sum(one.is_behind for one in settings[key])
        state += f", {behind} stopped" if behind else ""
        lines.append((" ".join(short_names(key)) or "as it is", state, *cells))
    return ("setting", "runs", *names), lines


def spread(values: Sequence[float]) -> str:
    """The mean of values, and their standard deviation where there are several."""
    if not values:
        return ""
    return f"{fmean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")
