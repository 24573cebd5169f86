"""Learning in context: a decoder is shown examples of a map that it never saw and says what it does to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.collate import Batch, several
from heedful.data.data_spec import DataSpec
from heedful.data.formats.line_files import is_number
from heedful.data.splits import Splits
from heedful.data.toys.linear_maps import Numbers, Prompt, drawn, least_squares, maps
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps_of_seen import maps as maps_of_words
from heedful.looking.page import Curve, Curves, Example, Figures, Samples
from heedful.models.numerics import device_of, finite, precise
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Number, Result
from heedful.tasks.closed import PLAIN, Task, Terms
from heedful.views.finding import Finding

MANY = 10_000  # examples or dimensions, at most, that a file may say there are
SIZE = 256  # prompts that are answered at once


class InContext(Task):
    """Says what a map does that is told by examples alone; scored by how much less the error is than that of nothing.

    Of a prompt x1 y1 x2 y2 ... each y is foretold at its x (Garg et al., 2022). The weights learn to learn: every map
    is new.
    """

    name: ClassVar[str] = "in-context"
    family: ClassVar[str] = "forecaster"
    watch: ClassVar[str] = "skill"
    keys: ClassVar[frozenset[str]] = frozenset({"longest", "dimensions"})
    ordered: ClassVar[bool] = True
    even: ClassVar[bool] = True
    input: ClassVar[str] = "examples as numbers with commas, the answer last, a semicolon after each, then an input"

    seed = 0

    def __init__(self, dimensions: int, examples: int) -> None:
        self.dimensions, self.examples = dimensions, examples

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Prompt]]:
        if data.longest < 2:
            raise Refusal(
                f"data.longest={data.longest} leaves no example before the input that is asked; give 2 or more"
            )
        task = cls(data.dimensions, data.longest)
        task.seed = seed
        return task, maps(data, seed)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Prompt]:
        if (data.dimensions, data.longest) != (self.dimensions, self.examples):
            known = f"data.dimensions={self.dimensions} and data.longest={self.examples}"
            raise Refusal(f"the model learned with {known}; leave others out")
        return maps(data, seed)

    def numbers(self) -> dict[str, int]:
        return {"channels": self.dimensions + 1}

    def length(self, sample: Prompt) -> int:
        return 2 * self.examples

    def fresh(self, samples: Sequence[Prompt], epoch: int) -> Sequence[Prompt]:
        return drawn(self.seed, epoch, [one.place for one in samples], self.examples, self.dimensions)

    def batch(self, samples: Sequence[Prompt]) -> Batch:
        steps = [rows(one.inputs, one.answers) for one in samples]
        answers = np.stack([one.answers for one in samples])
        return {"series": torch.from_numpy(np.stack(steps)), "answer": torch.from_numpy(answers)}

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        error = precise(model(batch["series"])[:, ::2, -1]) - batch["answer"]
        return error.square().sum(), torch.full((), error.numel(), device=error.device)

    # ------------------------------------------------------------------ scoring

    @torch.no_grad()
    def said(self, model: nn.Module, samples: Sequence[Prompt]) -> NDArray[np.float64]:
        """What the model says of every input of prompts, from what stands before it: B K."""
        model.eval()
        made = []
        for some in several(samples, SIZE):
            series = self.batch(some)["series"].to(device_of(model))
            made.append(model(series)[:, ::2, -1].double().cpu().numpy())
            self.tell(len(some))
        return np.concatenate(made)

    def errors(self, model: nn.Module, samples: Sequence[Prompt]) -> dict[str, NDArray[np.float64]]:
        """The mean squared error by the number of examples before an input: of the model, least squares and nothing."""
        inputs, answers = (np.stack([getattr(one, name) for one in samples]) for name in ("inputs", "answers"))
        said = {"this decoder": self.said(model, samples), "least squares": least_squares(inputs, answers)}
        return {name: np.square(found - answers).mean(0) for name, found in said.items()} | {
            "nothing learned": np.square(answers.astype(np.float64)).mean(0)
        }

    def score(self, model: nn.Module, samples: Sequence[Prompt]) -> dict[str, float]:
        found = self.errors(model, samples)
        ours, best, none = (found[name] for name in ("this decoder", "least squares", "nothing learned"))
        skill = 1 - float(ours[-1]) / max(float(none[-1]), 1e-12)
        return {"skill": skill, "error": float(ours.mean()), "least_squares_error": float(best.mean())}

    def finding(self, model: nn.Module, samples: Sequence[Prompt]) -> Finding | None:
        found = self.errors(model, samples)
        curves = tuple(
            Curve(name, tuple((float(at), float(error)) for at, error in enumerate(errors)), "error", along="examples")
            for name, errors in found.items()
        )
        enough = self.dimensions  # examples tell a map of so many dimensions
        at = min(enough, self.examples - 1)
        told = tuple(
            (name, f"{errors[at]:.3f}", f"squared error; examples before it: {at}") for name, errors in found.items()
        )
        return Finding(Figures("What examples are worth", told), "", "mean", (Curves("Error by examples", curves),))

    # ------------------------------------------------------------------ asking

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        for asked in read_all(inputs, self.known):
            yield Number(self.answer(model, asked))

    @torch.no_grad()
    def answer(self, model: nn.Module, series: Numbers) -> float:
        """What the model says of the last input of a prompt (T C)."""
        model.eval()
        return float(finite(model(torch.from_numpy(series)[None].to(device_of(model)))[0, -1, -1]))

    def known(self, text: str) -> Numbers:
        """The steps of a prompt: examples, then an input alone."""
        parts = [[field.strip() for field in part.split(",")] for part in text.strip().strip(";").split(";")]
        for at, part in enumerate(parts, 1):
            wanted = self.dimensions + (at < len(parts))
            if len(part) != wanted or not all(map(is_number, part)):
                raise Refusal(f"part {at} of the input, {','.join(part)!r}, is not {wanted} numbers; give {self.input}")
        if len(parts) > self.examples:
            raise Refusal(f"the input has {len(parts)} parts, and the model learned from {self.examples}; give fewer")
        found = [[float(field) for field in part] for part in parts]
        inputs = np.array([part[: self.dimensions] for part in found], dtype=np.float32)
        answers = np.array([*(part[-1] for part in found[:-1]), 0.0], dtype=np.float32)
        return rows(inputs, answers)[:-1]

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        series = self.known(text)
        model.eval()
        with look(model) as seen:
            model(torch.from_numpy(series)[None].to(device_of(model)))
        words = [f"{'xy'[at % 2]}{at // 2 + 1}" for at in range(len(series))]
        name = f"{len(series) // 2} examples → {self.answer(model, series):.3f}"
        return Example(name, maps_of_words(seen, lambda path: (words, words)))

    def show(self, model: nn.Module, samples: Sequence[Prompt]) -> Samples:
        inputs, answers = (np.stack([getattr(one, name) for one in samples]) for name in ("inputs", "answers"))
        said, best = self.said(model, samples)[:, -1], least_squares(inputs, answers)[:, -1]
        cells = zip(samples, answers[:, -1], best, said, strict=True)
        shown = tuple(
            (",".join(f"{number:.2f}" for number in one.inputs[-1]), f"{wanted:.3f}", f"{fit:.3f}", f"{ours:.3f}")
            for one, wanted, fit, ours in cells
        )
        header = ("input", "its answer", "least squares", "this decoder")
        return Samples(f"After {self.examples - 1} examples of maps it never saw", header, shown)

    def write_input(self, sample: Prompt) -> str:
        parts = [[*one, answer] for one, answer in zip(sample.inputs, sample.answers, strict=True)]
        parts[-1] = parts[-1][:-1]
        return "; ".join(",".join(f"{number:.6g}" for number in part) for part in parts)

    # ------------------------------------------------------------------ keeping

    def state(self) -> dict[str, Any]:
        return {"dimensions": self.dimensions, "examples": self.examples}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        dimensions, examples = int(state["dimensions"]), int(state["examples"])
        if not (1 <= dimensions <= MANY and 1 <= examples <= MANY):
            raise ValueError("dimensions and examples must be 1 or more")
        return cls(dimensions, examples)


def rows(inputs: Numbers, answers: Numbers) -> Numbers:
    """A prompt as steps: an input with nothing in the last channel, then its answer there alone: K D, K -> 2K D+1."""
    count, dimensions = inputs.shape
    made = np.zeros((2 * count, dimensions + 1), dtype=np.float32)
    made[::2, :-1], made[1::2, -1] = inputs, answers
    return made
