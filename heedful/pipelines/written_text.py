"""What is kept of a model that writes texts: its tokenizer and special tokens, and how answers are searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from heedful.data.collate import Ids
from heedful.decoding.search_spec import Decoding
from heedful.models.specs import Special
from heedful.models.text.transformer import SPECIAL
from heedful.pipelines.learned import Learned
from heedful.tokenizers import Tokenizer


@dataclass(frozen=True)
class WrittenText(Learned):
    """Tokenizer of what is written, the special tokens around it, how long it may be, and how it is searched for."""

    tokenizer: Tokenizer
    special: Special = SPECIAL
    longest: int = 0  # what the model takes
    search: Decoding = field(default_factory=Decoding)

    @property
    def decoding(self) -> Decoding:
        return self.search

    def searched_by(self, decoding: Decoding) -> Self:
        return replace(self, search=decoding)

    def ids(self, texts: Sequence[str]) -> Sequence[Ids]:
        """The ids of texts, without the special tokens around them."""
        return self.tokenizer.encode_all(texts)

    def state(self) -> dict[str, Any]:
        return {"decoding": self.search.model_dump(exclude_none=True)}
