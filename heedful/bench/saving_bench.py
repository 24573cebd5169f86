"""A training run of base size: steps alone, with a save beside them, and with a save that they wait for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import torch

from heedful.bench.measure import Case, interleave
from heedful.bench.translate_bench import BATCH, LENGTH, VOCAB, model, step
from heedful.formats.weights import state
from heedful.models.text.transformer import END
from heedful.training.async_save import Saver
from heedful.training.checkpoint import Progress, Tensors

PEERS = ("safetensors",)
ALONE, BESIDE, WAITED = "no save", "a save beside the steps", "a save that is waited for"
STEPS = 10  # more than a save takes
MINUTE = 60.0


def cases(rounds: int, said: Callable[[], object]) -> Iterator[tuple[Case, str]]:
    """Weights, two moments of AdamW, an average and the best of base size: how much longer steps take by a save."""
    learner = model()
    source, target = torch.randint(END + 1, VOCAB, (BATCH, LENGTH)), torch.randint(END + 1, VOCAB, (BATCH, LENGTH + 1))
    steps = step(learner, learner, source, target, torch.float32)
    steps()
    parts = {name: state(learner) for name in ("model", "average", "best", "first", "second")}
    with tempfile.TemporaryDirectory() as folder:
        contenders = {ALONE: lambda: many(steps), **saving(Path(folder), parts, steps)}
        case = Case(
            f"{STEPS} steps of base size on this CPU", "steps", STEPS, interleave(contenders, rounds, said=said)
        )
    pause = median(b - a for a, b in zip(case.seconds[ALONE], case.seconds[BESIDE], strict=True))
    share = f"{100 * pause / MINUTE:.1f} % of training at one save a minute"
    yield Case(f"{case.name} (a save costs {pause:.2f} s: {share})", case.unit, case.amount, case.seconds), ALONE


def saving(folder: Path, parts: dict[str, Tensors], steps: Callable[[], object]) -> dict[str, Callable[[], object]]:
    """The steps with one save among them, which is at its end when they are."""

    def save(wait: bool) -> None:
        with Saver(folder, 1, {}) as saver:
            saver.save(Progress(1), parts)
            if wait:
                saver.wait()
            many(steps)

    return {BESIDE: lambda: save(False), WAITED: lambda: save(True)}


def many(steps: Callable[[], object]) -> None:
    """Several steps, one after the other."""
    for _ in range(STEPS):
        steps()
