"""In-context regression pipeline: examples of a map, and an input, become what the map makes of that input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from heedful.data.collate import several
from heedful.data.line_files import is_number
from heedful.data.readers.number_series import Maps
from heedful.data.splits import Splits
from heedful.data.toys.linear_maps import Numbers, Prompt
from heedful.errors import Failure, Refusal
from heedful.looking import look
from heedful.looking.maps import maps_of_seen
from heedful.looking.page import Example
from heedful.models.numerics import device_of
from heedful.pipelines.learned import Learned
from heedful.pipelines.pipeline import Heard, Pipeline, unheard
from heedful.results import Number

MANY = 10_000  # examples or dimensions, at most, that a file may say there are
AT_ONCE = 256  # prompts that are answered together


@dataclass(frozen=True)
class MapsLearned(Learned):
    """How many numbers the inputs of maps have, how many examples a prompt, and the seed of the maps to learn from."""

    dimensions: int
    examples: int
    seed: int = 0

    @classmethod
    def fit(cls, splits: Splits[Prompt], reader: Maps, seed: int) -> Self:
        """What the data say: nothing is learned of maps that are drawn."""
        return cls(reader.dimensions, reader.longest, seed)

    def facts(self) -> dict[str, Any]:
        return {"channels": self.dimensions + 1}

    def state(self) -> dict[str, Any]:
        return {"dimensions": self.dimensions, "examples": self.examples}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        dimensions, examples = int(state["dimensions"]), int(state["examples"])
        if not (1 <= dimensions <= MANY and 1 <= examples <= MANY):
            raise ValueError("dimensions and examples must be 1 or more")
        return cls(dimensions, examples)


@dataclass(frozen=True)
class InContext(Pipeline[MapsLearned]):
    """In-context regression: the answer is that to the last input of a prompt."""

    def accepts(self, given: Any, learned: MapsLearned) -> Prompt:
        parts = [[field.strip() for field in part.split(",")] for part in given.strip().strip(";").split(";")]
        for at, part in enumerate(parts, 1):
            wanted = learned.dimensions + (at < len(parts))
            if len(part) != wanted or not all(map(is_number, part)):
                raise Refusal(f"part {at} of the input, {','.join(part)!r}, is not {wanted} numbers; give {self.input}")
        if len(parts) > learned.examples:
            said = f"the input has {len(parts)} parts, and the model learned from {learned.examples}"
            raise Refusal(f"{said}; give fewer")
        found = [[float(field) for field in part] for part in parts]
        inputs = np.array([part[: learned.dimensions] for part in found], dtype=np.float32)
        return Prompt(inputs, np.array([*(part[-1] for part in found[:-1]), 0.0], dtype=np.float32))

    def results(self, model: nn.Module, samples: Sequence[Prompt], learned: MapsLearned, heard: Heard) -> list[Number]:
        made: dict[int, Number] = {}
        for count in sorted({len(one.answers) for one in samples}):
            alike = [at for at, one in enumerate(samples) if len(one.answers) == count]
            said = answers_of(model, [samples[at] for at in alike], learned, heard)
            made |= {at: Number(float(row[-1])) for at, row in zip(alike, said, strict=True)}
        if not all(np.isfinite(one.value) for one in made.values()):
            raise Failure("the model's scores are not numbers, so it has no answer; train it at a lower rate")
        return [made[at] for at in range(len(samples))]

    @torch.no_grad()
    def look(self, model: nn.Module, given: Any, learned: MapsLearned) -> Example:
        prompt = self.accepts(given, learned)
        series = steps_of(prompt)[:-1]
        answer = self.results(model, [prompt], learned, unheard)[0].value
        with look(model) as seen:
            model(torch.from_numpy(series)[None].to(device_of(model)))
        words = [f"{'xy'[at % 2]}{at // 2 + 1}" for at in range(len(series))]
        return Example(f"{len(series) // 2} examples → {answer:.3f}", maps_of_seen(seen, lambda path: (words, words)))


@torch.no_grad()
def answers_of(model: nn.Module, samples: Sequence[Prompt], learned: MapsLearned, heard: Heard) -> NDArray[np.float64]:
    """What the model says of every input of prompts of one length, from what stands before it: B K."""
    model.eval()
    made = []
    for some in several(samples, AT_ONCE):
        series = torch.from_numpy(np.stack([steps_of(one) for one in some])).to(device_of(model))
        made.append(model(series)[:, ::2, -1].cpu().double().numpy())
        heard(len(some))
    return np.concatenate(made)


def steps_of(prompt: Prompt) -> Numbers:
    """A prompt as steps: an input with nothing in the last channel, then its answer there alone: K D, K -> 2K D+1."""
    count, dimensions = prompt.inputs.shape
    made = np.zeros((2 * count, dimensions + 1), dtype=np.float32)
    made[::2, :-1], made[1::2, -1] = prompt.inputs, prompt.answers
    return made
