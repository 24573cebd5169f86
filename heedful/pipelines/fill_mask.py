"""Filling masks (masked language modelling, asked): the text with the likeliest token behind each mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch import Tensor

from heedful.data.formats.labelled_text import Sentence
from heedful.errors import Refusal
from heedful.models.numerics import exact
from heedful.pipelines.encoder_text import EncoderText, TextLearned
from heedful.pipelines.use import Usage
from heedful.results import Text
from heedful.tokenizers import Joined


@dataclass(frozen=True)
class MaskedText(TextLearned):
    """A tokenizer that has a token for a mask."""

    outputs: ClassVar[frozenset[str]] = frozenset({"masked"})

    @property
    def mask(self) -> tuple[str, int]:
        """The name of the token that stands for another, and its id."""
        for name, at in self.tokenizer.special.items():
            if "mask" in name.casefold():
                return name, at
        raise Refusal("the tokenizer has no token for a mask; use one that has")


Kept = TypeVar("Kept", bound=MaskedText)


@dataclass(frozen=True)
class FillMask(EncoderText[Kept]):
    """Filling masks; a text without one can be looked into all the same."""

    def answerable(self, given: Any, learned: Kept) -> Sentence:
        name, _ = learned.mask
        if not any(name in text for text in ([given] if isinstance(given, str) else given)):
            raise Refusal(f"the input has no {name}; put one where a token should be found")
        return self.seen(given, learned)

    def answer(self, joined: Joined, given: Tensor, learned: Kept) -> Text:
        return self.answers(joined, given, learned, 1)[0]

    def answers(self, joined: Joined, given: Tensor, learned: Kept, count: int) -> Sequence[Text]:
        """The likeliest texts, each with the log-probability of all that was put in the place of masks."""
        rows = [(0.0, list(joined.ids))]
        for at in (at for at, token in enumerate(joined.ids) if token == learned.mask[1]):
            likely = exact(given[at]).log_softmax(-1).topk(min(count, given.shape[-1]))
            pairs = list(zip(likely.values.tolist(), likely.indices.tolist(), strict=True))
            longer = [(score + more, [*ids[:at], new, *ids[at + 1 :]]) for score, ids in rows for more, new in pairs]
            rows = sorted(longer, key=lambda row: -row[0])[:count]
        return [Text(learned.tokenizer.decode(ids), score) for score, ids in rows]


FILLING = Usage(name="fill-mask", pipeline=FillMask(), learned=MaskedText)
