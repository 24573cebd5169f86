"""Vectors of sentences: near each other where sentences mean the same (Reimers and Gurevych, 2019)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from heedful.errors import Refusal
from heedful.models.numerics import unit
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Vector
from heedful.safe.json_and_tensors import read_json
from heedful.safe.opening import content, inside
from heedful.safe.plain_data import json_of
from heedful.tasks.reading import Reading
from heedful.tokenizers import Joined

MODULES, SETTINGS = "modules.json", "sentence_bert_config.json"  # of sentence-transformers
LARGEST = 1 << 20  # bytes of a list of modules
POOLS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_cls": "first",
}


class Vectors(Reading):
    """One vector a sentence: the mean of its states, or the first of them, of length one where asked for."""

    name: ClassVar[str] = "vectors"
    outputs: ClassVar[frozenset[str]] = frozenset({"states", "pooled"})

    pool: str = "mean"
    unit: bool = False  # whether vectors are brought to a length of one

    def answer(self, joined: Joined, given: Tensor) -> Vector:
        return Vector(tuple(self.vector(given).tolist()))

    def vector(self, states: Tensor) -> Tensor:
        """The vector of one sentence's states: T M -> M."""
        made = states.mean(0) if self.pool == "mean" else states[0]
        return unit(made) if self.unit else made

    def vectors(self, model: nn.Module, inputs: Iterable[str]) -> Tensor:
        """The vectors of sentences: B M."""
        read = self.read_by(model, read_all(inputs, self.known))
        return torch.stack([self.vector(states) for _, states in read])

    def similar(self, model: nn.Module, inputs: Sequence[str]) -> Tensor:
        """How near each sentence's vector is to each other's: the cosine of the angle between them, B B."""
        made = unit(self.vectors(model, inputs))
        return (made @ made.T).clamp(-1.0, 1.0)

    def titled(self, text: str, answer: str) -> str:
        return " | ".join(text.split("\t"))

    def state(self) -> dict[str, Any]:
        return {"pool": self.pool, "unit": self.unit, "longest": self.longest}

    @classmethod
    def of(cls, folder: Path) -> Self:
        return cls.read(folder, told(folder))

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        made = super().read(folder, state)
        made.pool, made.unit = state.get("pool", "mean"), state.get("unit", False)
        if made.pool not in POOLS.values() or type(made.unit) is not bool:
            raise ValueError(f"pool is {made.pool!r} and unit {made.unit!r}")
        return made


def told(folder: Path) -> dict[str, Any]:
    """What sentence-transformers wrote of how states become a vector, where it wrote something."""
    if not os.path.lexists(folder / MODULES):
        return {}
    said: dict[str, Any] = {}
    for kind, path in modules(folder):
        if kind == "Pooling":
            said["pool"] = pooling(folder / path / "config.json")
        elif kind == "Normalize":
            said["unit"] = True
        elif kind != "Transformer":
            raise Refusal(f"{folder / MODULES} asks for {kind[:60]!r}, which is not supported; take the file away")
    if os.path.lexists(folder / SETTINGS):
        longest = read_json(folder / SETTINGS).get("max_seq_length")
        said |= {"longest": longest} if type(longest) is int and longest > 0 else {}
    return said


def modules(folder: Path) -> list[tuple[str, str]]:
    """The last word of each module's kind, and its folder."""
    path = inside(folder / MODULES)
    try:
        found = json_of(content(path, LARGEST).decode("utf-8"))
        made = [(str(one["type"]).rsplit(".", 1)[-1], str(one["path"])) for one in found]
    except (OSError, ValueError, RecursionError, LookupError, TypeError) as error:
        raise Refusal(f"{path} cannot be read as a list of modules: {error}; copy it again") from None
    for _, place in made:
        if place not in ("", Path(place).name):
            raise Refusal(f"{path} names {place[:60]!r}, which is no folder in this one; copy it again")
    return made


def pooling(path: Path) -> str:
    """How states become one vector, as a config of sentence-transformers says it."""
    inside(path.parent)
    said = read_json(path)
    asked = [key for key, value in said.items() if key.startswith("pooling_mode_") and value is True]
    asked += [f"pooling_mode_{said['pooling_mode']}"] if "pooling_mode" in said else []  # as newer ones say it
    if len(asked) != 1 or asked[0] not in POOLS:
        raise Refusal(f"{path} asks for {', '.join(asked)[:200] or 'nothing'}; known: one of {', '.join(POOLS)}")
    return POOLS[asked[0]]
