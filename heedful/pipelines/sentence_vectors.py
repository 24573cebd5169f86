"""Sentence embeddings: vectors near each other where sentences mean the same (Reimers and Gurevych, 2019)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from heedful.data.formats.labelled_text import Sentence
from heedful.errors import Refusal
from heedful.models.numerics import unit
from heedful.pipelines.encoder_text import EncoderText, TextLearned, outputs_of
from heedful.pipelines.pipeline import Heard, unheard
from heedful.pipelines.reading_inputs import read_all
from heedful.pipelines.use import Usage
from heedful.results import Vector
from heedful.safe.json_and_tensors import read_json
from heedful.safe.opening import content, inside
from heedful.safe.plain_data import json_of
from heedful.tokenizers import Joined

MODULES, SETTINGS = "modules.json", "sentence_bert_config.json"  # of sentence-transformers
LARGEST = 1 << 20  # bytes of a list of modules
POOLS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_cls": "first",
}


@dataclass(frozen=True)
class VectorLearned(TextLearned):
    """How states become a vector: their mean or the first of them, brought to a length of one where asked for."""

    outputs: ClassVar[frozenset[str]] = frozenset({"states", "pooled"})

    pool: str = "mean"
    unit: bool = False

    def vector(self, states: Tensor) -> Tensor:
        """The vector of one sentence's states: T M -> M."""
        made = states.mean(0) if self.pool == "mean" else states[0]
        return unit(made) if self.unit else made

    def state(self) -> dict[str, Any]:
        return {"pool": self.pool, "unit": self.unit, "longest": self.longest}

    @classmethod
    def of(cls, folder: Path) -> Self:
        return cls.read(folder, said_by(folder))

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        pool, one = state.get("pool", "mean"), state.get("unit", False)
        if pool not in POOLS.values() or type(one) is not bool:
            raise ValueError(f"pool is {pool!r} and unit {one!r}")
        return replace(super().read(folder, state), pool=pool, unit=one)


@dataclass(frozen=True)
class SentenceVectors(EncoderText[VectorLearned]):
    """Sentence embeddings: one vector for each input."""

    def answer(self, joined: Joined, given: Tensor, learned: VectorLearned) -> Vector:
        return Vector(tuple(learned.vector(given).tolist()))

    def vectors(
        self, model: nn.Module, inputs: Iterable[Any], learned: VectorLearned, heard: Heard = unheard
    ) -> Tensor:
        samples = read_all(inputs, lambda given: self.accepts(given, learned))
        return torch.stack([learned.vector(one) for one in outputs_of(model, [one.joined for one in samples], heard)])

    def titled(self, read: Sentence, answer: str) -> str:
        return " | ".join(read.texts)


def said_by(folder: Path) -> dict[str, Any]:
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


VECTORS = Usage(name="sentence-vectors", pipeline=SentenceVectors(), learned=VectorLearned)
