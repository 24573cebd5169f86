"""Reading: what is asked of a model of text, for one sentence or a pair of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from heedful.attention import standing
from heedful.data.collate import Batch, alike, several, stack, to
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps_of_seen import maps
from heedful.looking.page import Example
from heedful.models import Spec
from heedful.models.heads_asked import AskedSpec, asked
from heedful.models.numerics import device_of, finite
from heedful.pipelines.reading_inputs import nonempty, read_all
from heedful.results import Result
from heedful.tasks.use import Use
from heedful.tokenizers import Joined, Tokenizer, hf_folders
from heedful.tokenizers.char_ngrams import spelt

ROOM = 8192  # tokens that are read at once
WINDOW = 1024  # inputs among which those of like length are read together


class Reading(Use):
    """Has an encoder read sentences or pairs of them, and makes an answer of what it gives for each."""

    outputs: ClassVar[frozenset[str]]  # of models that can be used so
    input: ClassVar[str] = "a sentence, or two with a tab between them"

    longest: int = 0  # tokens that the model reads; more are left out
    labels: Sequence[str] = ()
    letters: int = 0  # n-grams of them that the model has vectors for

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @abstractmethod
    def answer(self, joined: Joined, given: Tensor) -> Result:
        """The answer to one input, of what the model gives for it: T ..., or what it gives for all of it."""

    def suits(self, spec: Spec) -> None:
        word = asked(spec)
        if not isinstance(spec, AskedSpec) or word not in self.outputs:
            known = " or ".join(sorted(self.outputs))
            raise Refusal(f"{self.name} asks for model.output={known}, and this model's is {word}; use another task")
        if len(self.tokenizer) > spec.vocab:
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model {spec.vocab}; copy both again")
        self.longest, self.letters = min(self.longest or spec.length, spec.length), letters_of(spec)
        self.labels = spec.labels or [str(at) for at in range(spec.classes or 0)]

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        return (self.answer(*read) for read in self.read_by(model, read_all(inputs, self.known)))

    def known(self, text: str) -> tuple[str, ...]:
        """The sentence or sentences of an input."""
        texts = tuple(nonempty(text, self.input).split("\t"))
        if len(texts) > 2:
            raise Refusal(f"the input has {len(texts) - 1} tabs; give {self.input}")
        return texts

    def seen(self, text: str) -> tuple[str, ...]:
        """The sentence or sentences of an input that is looked into: what can be answered."""
        return self.known(text)

    def joined(self, texts: Sequence[tuple[str, ...]], longest: int | None = None) -> list[Joined]:
        """The tokens of inputs, cut where they are longer than asked for."""
        return self.tokenizer.join(texts, longest)

    def read_by(self, model: nn.Module, texts: Sequence[tuple[str, ...]]) -> Iterator[tuple[Joined, Tensor]]:
        """What a model gives for each input, in order."""
        for window in several(texts, WINDOW):
            joined = self.joined(window, self.longest)
            for empty in (one for one in joined if not one.ids):  # where a tokenizer puts nothing around a text
                raise Refusal(f"{' '.join(empty.texts)!r} has no token that the model knows; give another text")
            yield from zip(joined, self.given(model, joined), strict=True)

    @torch.no_grad()
    def given(self, model: nn.Module, joined: Sequence[Joined]) -> list[Tensor]:
        """What a model gives for each of several inputs, in order; those of like length are read together."""
        model.eval()
        made: dict[int, Tensor] = {}
        for places in alike([len(one.ids) for one in joined], ROOM):
            group = [joined[at] for at in places]
            answer = given_by(model, group)
            rows = (row[: len(one.ids)] if answer.dim() > 2 else row for one, row in zip(group, answer, strict=True))
            made |= dict(zip(places, rows, strict=True))
            self.tell(len(places))
        return [made[at] for at in range(len(joined))]

    def doubt(self, text: str) -> str | None:
        try:
            length = len(self.joined([self.seen(text)])[0].ids)
        except Refusal:  # whoever answers will say so, and of which input
            return None
        if length <= self.longest:
            return None
        return f"{text[:60]!r} and so on is {length:,} tokens long, and the model reads the first {self.longest:,}"

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        model.eval()
        joined = self.joined([self.seen(text)], self.longest)
        with look(model) as seen:
            given = given_by(model, joined)[0]
        pieces = self.pieces(joined[0])
        answer = self.answer(joined[0], given)
        return Example(self.titled(text, answer.plain()), maps(seen, lambda path: (pieces, pieces)))

    def pieces(self, joined: Joined) -> list[str]:
        """The tokens as maps name them; one that the model knows by its letters alone is told as it is spelt."""
        named = self.tokenizer.pieces(joined.ids)
        if not self.letters:
            return named
        blank = " " if any(piece[:1].isspace() for piece in named) else ""  # where it is told that words begin
        begun = ((word.removeprefix("<"), blank * word.startswith("<")) for word in joined.words)
        spelt = (before + word.removesuffix(">") for word, before in begun)
        rows = zip(joined.ids, named, spelt, strict=True)
        return [word if word and at == self.tokenizer.layout.unknown else piece for at, piece, word in rows]

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
        made = cls(hf_folders.needed(folder))
        longest = state.get("longest", 0)
        if type(longest) is not int or longest < 0:
            raise ValueError(f"longest is {longest!r}")
        made.longest = longest
        return made


def given_by(model: nn.Module, joined: Sequence[Joined]) -> Tensor:
    """What an encoder gives for inputs: B T ..., or B ..."""
    return finite(read(model, to(batch_of(joined, letters_of(model.spec)), device_of(model))).float())


def letters_of(spec: Any) -> int:
    """How many n-grams of letters a model has vectors for."""
    return getattr(spec, "letters", 0)


def batch_of(joined: Sequence[Joined], letters: int = 0) -> Batch:
    """Inputs as tensors, padded at the end: tokens, segments (B T), lengths, perhaps tasks (B) and letters (B T K)."""
    lengths = torch.tensor([len(one.ids) for one in joined])
    segments = stack([one.segments for one in joined])
    made = {"tokens": stack([one.ids for one in joined]), "segments": segments, "lengths": lengths}
    tasks = [one.task for one in joined if one.task is not None]
    made |= {"tasks": torch.tensor(tasks)} if tasks else {}
    return made | {"letters": torch.from_numpy(spelt(joined, letters))} if letters else made


def read(model: nn.Module, batch: Batch, copies: int = 1) -> Tensor:
    """What a model gives for a batch of inputs, or copies of one; segments are told to those that know them."""
    tokens, known = batch["tokens"], getattr(model.spec, "segments", 0)
    positions = standing(torch.arange(tokens.shape[1], device=tokens.device) < batch["lengths"][:, None])
    told = {"segments": batch["segments"].clamp(max=known - 1)} if known else {}
    told |= {name: batch[name] for name in ("tasks", "letters") if name in batch}
    if copies > 1 and getattr(model.spec, "members", 1) > 1:
        answer: Tensor = model(tokens, positions=positions, copies=copies, **told)
    else:
        answer = model(tokens, positions=positions, **told)
    return answer
