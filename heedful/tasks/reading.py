"""Reading: what is asked of an encoder of text, for one sentence or a pair of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from heedful.attention import standing
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.page import Example
from heedful.models import Spec
from heedful.models.bert import EncoderSpec
from heedful.models.words import parse
from heedful.tasks.task import device_of, maps, nonempty, read_all, several, stack
from heedful.tasks.use import Use
from heedful.tasks.writing import alike
from heedful.text import Joined, Tokenizer, folders

ROOM = 8192  # tokens that are read at once
WINDOW = 1024  # inputs among which those of like length are read together


class Reading(Use):
    """Has an encoder read sentences or pairs of them, and makes an answer of what it gives for each."""

    outputs: ClassVar[frozenset[str]]  # of models that can be used so
    input: ClassVar[str] = "a sentence, or two with a tab between them"

    longest: int = 0  # tokens that the model reads; more are left out
    labels: Sequence[str] = ()

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @abstractmethod
    def answer(self, joined: Joined, given: Tensor) -> str:
        """The answer to one input, of what the model gives for it: T ..., or what it gives for all of it."""

    def suits(self, spec: Spec) -> None:
        word = parse(spec.output)[0] if isinstance(spec, EncoderSpec) else "none"
        if not isinstance(spec, EncoderSpec) or word not in self.outputs:
            known = " or ".join(sorted(self.outputs))
            raise Refusal(f"{self.name} asks for model.output={known}, and this model's is {word}; use another task")
        if len(self.tokenizer) > spec.vocab:
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model {spec.vocab}; copy both again")
        self.longest = min(self.longest or spec.length, spec.length)
        self.labels = spec.labels or [str(at) for at in range(spec.classes or 0)]

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[str]:
        return (self.answer(*read) for read in self.read_by(model, read_all(inputs, self.known)))

    def known(self, text: str) -> tuple[str, ...]:
        """The sentence or sentences of an input."""
        texts = tuple(nonempty(text, self.input).split("\t"))
        if len(texts) > 2:
            raise Refusal(f"the input has {len(texts) - 1} tabs; give {self.input}")
        return texts

    @torch.no_grad()
    def read_by(self, model: nn.Module, texts: Sequence[tuple[str, ...]]) -> Iterator[tuple[Joined, Tensor]]:
        """What a model gives for each input, in order; those of like length are read together."""
        model.eval()
        for window in several(texts, WINDOW):
            joined = self.tokenizer.join(window, self.longest)
            made: dict[int, Tensor] = {}
            for places in alike([len(one.ids) for one in joined], ROOM):
                group = [joined[at] for at in places]
                given = given_by(model, group)
                rows = (row[: len(one.ids)] if given.dim() > 2 else row for one, row in zip(group, given, strict=True))
                made |= dict(zip(places, rows, strict=True))
                self.tell(len(places))
            yield from ((one, made[at]) for at, one in enumerate(joined))

    def doubt(self, text: str) -> str | None:
        length = len(self.tokenizer.join([tuple(text.split("\t")[:2])])[0].ids)
        if length <= self.longest:
            return None
        return f"{text[:60]!r} and so on is {length:,} tokens long, and the model reads the first {self.longest:,}"

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        model.eval()
        joined = self.tokenizer.join([self.known(text)], self.longest)
        with look(model) as seen:
            given = given_by(model, joined)[0]
        pieces = self.tokenizer.pieces(joined[0].ids)
        answer = self.answer(joined[0], given)
        return Example(self.titled(text, answer), maps(seen, lambda path: (pieces, pieces)))

    def titled(self, text: str, answer: str) -> str:
        """What stands over a picture of one input."""
        return f"{' | '.join(text.split(chr(9)))} → {answer}"

    def write(self, folder: Path) -> None:
        super().write(folder)
        self.tokenizer.write(folder / "tokenizer.json")

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The use of a folder that does not say how it was used before."""
        return cls.read(folder, {})

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        made = cls(folders.needed(folder))
        longest = state.get("longest", 0)
        if type(longest) is not int or longest < 0:
            raise ValueError(f"longest is {longest!r}")
        made.longest = longest
        return made


def given_by(model: nn.Module, joined: Sequence[Joined]) -> Tensor:
    """What an encoder gives for inputs: B T ..., or B ..."""
    spec, device = model.spec, device_of(model)
    assert isinstance(spec, EncoderSpec)
    tokens, segments = stack([one.ids for one in joined]), stack([one.segments for one in joined])
    lengths = torch.tensor([len(one.ids) for one in joined])
    positions = standing(torch.arange(tokens.shape[1]) < lengths[:, None])
    told = {"segments": segments.clamp(max=spec.segments - 1).to(device)} if spec.segments else {}
    answer: Tensor = model(tokens.to(device), positions=positions.to(device), **told)
    return answer.float()
