"""How the learning rate rises and falls: pure functions of the step, from 0 to 1 of the highest rate."""

from __future__ import annotations

import math

from heedful.training.spec.training_spec import TrainingSpec


def rate(training: TrainingSpec, step: int) -> float:
    """The learning rate of a step, counted from 0."""
    rising = min(1.0, (step + 1) / max(1, training.warmup))
    return training.rate * rising * SHAPES[training.schedule](training, step)


def cosine(training: TrainingSpec, step: int) -> float:
    """Half a wave, down to nothing when the last step is done."""
    done = max(0, step - training.warmup) / max(1, training.steps - training.warmup)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def inverse_root(training: TrainingSpec, step: int) -> float:
    """The paper's, min(s^-0.5, s * warmup^-1.5) at step s: falls with the root of the step (Vaswani et al., 2017)."""
    warmup = max(1, training.warmup)
    return math.sqrt(warmup / max(warmup, step + 1))


def constant(training: TrainingSpec, step: int) -> float:
    """The same from the end of the warm-up on."""
    return 1.0


def stable_decay(training: TrainingSpec, step: int) -> float:
    """Warm-up, stable, then straight down over the last share of the steps (Hu et al., 2024)."""
    falling = max(1, round(training.decay * training.steps))
    return min(1.0, max(0, training.steps - step) / falling)


SHAPES = {"cosine": cosine, "inverse_root": inverse_root, "constant": constant, "stable_decay": stable_decay}
