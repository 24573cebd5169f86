"""The training loop, one for every task: steps, and what is logged, scored, saved and chosen between them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.data.collate import pick
from heedful.data.splits import Splits
from heedful.errors import Failure
from heedful.formats.weights import compare, restore, state
from heedful.interrupts import finishing_the_step
from heedful.tasks.work import Work
from heedful.training import checkpoint
from heedful.training.async_save import Saver, made_by
from heedful.training.distributed.ranks import ONE, Ranks
from heedful.training.distributed.sharded_tensors import local, parted_all, together
from heedful.training.microbatches import Ahead
from heedful.training.optimiser import optimiser_state, restore_optimiser
from heedful.training.record import Record
from heedful.training.schedule import rate
from heedful.training.spec.run_spec import RunSpec
from heedful.training.training_step import Stepper


class Interrupted(Exception):
    """A signal asked the run to stop; the step was finished and saved."""


class Loop(Stepper):
    """The steps of a run to its end: what is logged, scored, saved and chosen on the way."""

    def __init__(
        self, run: RunSpec, task: Work, splits: Splits[Any], model: nn.Module, folder: Path, ranks: Ranks = ONE
    ) -> None:
        super().__init__(run, task, splits, model, folder, ranks)
        self.every = self.training.log_every, self.training.evaluate_every, self.training.save_every
        self.best: dict[str, Tensor] = {}
        self.saver = Saver(folder / "checkpoints", self.training.keep, made_by(self.device, ranks.size))
        self.began, self.seen = 0.0, 0  # since the last line of the log: when that was, and samples

    # ------------------------------------------------------------------ saving

    def save(self) -> None:
        """Begins to write a checkpoint; the steps go on meanwhile."""
        parts = {
            "model": state(self.model),
            "optimiser": optimiser_state(self.optimiser, self.model),
            "best": self.best,
        }
        parts["log"] = self.log()
        if self.average:
            parts["average"] = self.average.weights
        parts = {name: together(tensors, self.ranks.first) for name, tensors in parts.items()}
        if self.ranks.first:
            self.saver.save(self.progress, parts)

    def log(self) -> dict[str, Tensor]:
        """What was summed since the last line of the log."""
        return {"losses": self.losses} | ({"each": self.each} if len(self.each) else {}) | self.precision.state()

    def restore(self, place: Path) -> None:
        """Goes back to where a checkpoint was written."""
        self.progress, parts = checkpoint.read_checkpoint(place)
        own = {
            "best": state(self.model),
            "average": self.model.state_dict(),
            "log": self.log(),
        }
        for name, tensors in own.items():
            if parts.get(name):  # there may be none yet
                compare(tensors, parts[name], str(place / f"{name}.safetensors"))
        restore(self.model, parted_all(parts["model"], state(self.model), self.device), str(place))
        restore_optimiser(self.optimiser, self.model, parts["optimiser"])
        self.best = {name: tensor.to(self.device) for name, tensor in parts["best"].items()}
        self.losses = parts["log"]["losses"].to(self.device)
        self.each = parts["log"].get("each", self.each).to(self.device)
        self.precision.restore(parts["log"])
        if self.average:
            self.average.weights = parted_all(parts["average"], self.average.weights, self.device)

    # ------------------------------------------------------------------ learning

    def train(self, record: Record) -> None:
        """Steps until the last one, until the score is good enough, or until it no longer grows."""
        self.began, self.seen = time.monotonic(), 0
        record.here = self.began
        with (
            finishing_the_step(record.say, self.ranks.gone) as stop,
            self.saver,
            Ahead(self.portions.at, self.progress.step, self.training.steps) as ahead,
            self.precision.products(),
            contextlib.closing(self.stages) as stage,
        ):
            while self.progress.step < self.training.steps and not self.done():
                with stage("data"):
                    portion = ahead.take()
                self.step(portion)
                self.seen += portion.samples
                self.progress.step += 1
                record.advance(self.progress.step)
                stopping = self.ranks.any(bool(stop))  # asked once: a signal may come at any line
                self.follow_up(record, stopping)
                stage.stepped(portion.samples)
                if stopping:
                    self.saver.wait()
                    raise Interrupted

    def follow_up(self, record: Record, stopping: bool) -> None:
        """What is due after a step: a line of the log, a score, a checkpoint; all of it of finite weights alone."""
        step, last = self.progress.step, self.progress.step == self.training.steps
        log, score, save = (step % every == 0 or last for every in self.every)
        if log or score or save or stopping:
            self.check_finite()
        if log:
            with self.stages("logging"):
                count = (step - 1) % self.training.log_every + 1
                speed = self.seen / (time.monotonic() - self.began)
                record.learned(step, *self.means(count), rate(self.training, step - 1), speed)
            self.began, self.seen = time.monotonic(), 0
        if score:
            with self.stages("evaluation"):
                self.evaluate(record)
        if save or stopping:
            with self.stages("saving"):
                self.save()

    def check_finite(self) -> None:
        """Stops the run where a loss or a weight is not finite, before it is scored or saved."""
        parts = [part for p in self.model.parameters() if (part := local(p)).numel()]
        finite = not parts or bool(torch.stack(torch._foreach_norm(parts, float("inf"))).isfinite().all())
        lost = int(self.first_bad) > 0
        if not self.ranks.any(lost or not finite or self.precision.lost):
            return
        what, step = ("loss is", int(self.first_bad)) if lost else ("weights are", self.progress.step)
        self.saver.wait()
        what = "gradients of float16 are" if self.precision.lost else what
        raise Failure(
            f"the {what} not finite at step {step}, at a rate of {rate(self.training, step - 1):.3g}; "
            f"{self.saver.last()}; "
            "train anew with a lower training.rate or training.clip, or a longer training.warmup"
        )

    # ------------------------------------------------------------------ choosing

    def evaluate(self, record: Record) -> None:
        """Scores the model, or its average, on validation data and keeps the best."""
        with self.averaged(), self.layout.whole() as model:
            score, best = self.ranks.told(lambda: self.score(model, record)), self.best_score
            if score != score:
                raise Failure(
                    f"the score {self.task.watch!r} is not a number at step {self.progress.step}; look at data.valid"
                )
            self.progress.since_best = 0 if score > best else self.progress.since_best + 1
            if score >= best:  # of two that are equal the later one, which has learned for longer
                self.progress.best_score, self.progress.best_step = score, self.progress.step
                if self.ranks.first:
                    self.best = {name: tensor.clone() for name, tensor in state(model).items()}

    def score(self, model: nn.Module, record: Record) -> float:
        """Scores a model on validation data, tells what it came to, and returns the score to choose by."""
        model = self.task.inference_model(model)
        with record.working("scoring", len(self.splits.valid)) as tell:
            scores = replace(self.task, tell=tell).score(model, self.splits.valid)
        record.scored(self.progress.step, "valid", scores)
        if self.task.shown:
            record.showed(self.progress.step, self.task.show(model, pick(self.splits.valid, self.task.shown)))
        return scores[self.task.watch]

    def try_mean(self, record: Record) -> None:
        """Puts the mean of the last checkpoints into the model, where it scores better than the best of them."""
        saved = checkpoint.all_of(self.folder / "checkpoints")[-self.training.average_last :]
        if not self.training.average_last or len(saved) < 2:
            return
        mean = checkpoint.mean(saved)
        restore(self.model, mean, "the mean of checkpoints")
        with record.working("scoring the mean of checkpoints", len(self.splits.valid)) as tell:
            scores = replace(self.task, tell=tell).score(self.model, self.splits.valid)
        better = scores[self.task.watch] > self.best_score
        record.say(
            f"mean of the last {len(saved)} checkpoints: {self.task.watch} {scores[self.task.watch]:.4f} on validation "
            f"against {self.best_score:.4f}; {'taken' if better else 'not taken'}"
        )
        if not better:
            restore(self.model, self.best, "the best weights")

    @property
    def best_score(self) -> float:
        """The best score so far."""
        return float("-inf") if self.progress.best_score is None else self.progress.best_score

    def done(self) -> bool:
        """Whether the score is good enough, or has not grown for too long."""
        enough = self.training.enough is not None and self.best_score >= self.training.enough
        return enough or 0 < self.training.patience <= self.progress.since_best

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """The model with its moving average for weights, where one is made."""
        if not self.average:
            yield
            return
        own = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self.average.weights)
        try:
            yield
        finally:
            self.model.load_state_dict(own)
