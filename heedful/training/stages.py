"""The stages of a step (data, forward, backward, optimiser, ...): what each takes, and which ran out of memory."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from heedful.models.numerics import synchronize
from heedful.training.out_of_memory import name_what_lacked
from heedful.training.spec.run_spec import RunSpec

WARM, TRACED = 10, 3  # steps: first those that are not looked at, then those of the trace, then those that are timed
TRACE = "trace.json"


class Stages:
    """Names what a run is doing; where a profile was asked for, times it and traces a few steps."""

    def __init__(self, run: RunSpec, device: torch.device, folder: Path, first: bool = True) -> None:
        self.run = run
        self.watch = Watch(device, folder / TRACE, run.training.steps) if run.training.profile and first else None

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        with name_what_lacked(name, self.run), self.watch.timed(name) if self.watch else contextlib.nullcontext():
            yield

    def stepped(self, samples: int) -> None:
        """A step is done, on so many samples."""
        if self.watch:
            self.watch.stepped(samples)

    def close(self) -> None:
        """Ends a trace that the run was too short for, or was stopped in."""
        if self.watch:
            self.watch.write_trace()


class Watch:
    """The seconds of every stage, and a trace, of steps after the first few; nothing that is computed changes."""

    def __init__(self, device: torch.device, trace: Path, steps: int) -> None:
        self.device, self.trace = device, trace
        self.warm = max(1, min(WARM, (steps - TRACED) // 2))
        self.steps = self.samples = self.done = 0
        self.seconds: dict[str, float] = defaultdict(float)
        self.began = self.ended = 0.0
        self.tracing: profile | None = None

    @contextlib.contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Adds the seconds of a stage to the others of its name."""
        began = self.now()
        with record_function(name):
            yield
        self.seconds[name] += self.now() - began

    def stepped(self, samples: int) -> None:
        """Goes on to the next step; the trace begins and ends here, and so does timing."""
        self.done += 1
        if self.done == self.warm:
            os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it would say on stderr that it begins and ends
            on = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (self.device.type == "cuda")
            self.tracing = profile(activities=on)
            self.tracing.start()
        elif self.done == self.warm + TRACED:
            self.write_trace()
            self.seconds, self.began = defaultdict(float), self.now()
        elif self.began:
            self.steps, self.samples, self.ended = self.steps + 1, self.samples + samples, self.now()

    def write_trace(self) -> None:
        """Writes the trace, where one was begun, as Chrome's and Perfetto's viewers read it."""
        if self.tracing:
            self.tracing.stop()
            self.tracing.export_chrome_trace(str(self.trace))
            self.tracing = None

    def now(self) -> float:
        """The time when all that was asked of the device is done."""
        synchronize(self.device)
        return time.perf_counter()
