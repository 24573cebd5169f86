"""What is learned from data before any weight: labels, a tokenizer, means; one frozen object beside the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from heedful.data.splits import Splits
from heedful.decoding.search_spec import Decoding
from heedful.models import Spec


@dataclass(frozen=True)
class Learned:
    """What a task keeps of its data and of its run: the reader makes it, and it stays with the model."""

    def facts(self) -> dict[str, Any]:
        """What the data say of the model: the size of its vocabulary, how many channels."""
        return {}

    def defaults(self) -> dict[str, Any]:
        """What they say of the model where nothing else does."""
        return {}

    def suited(self, spec: Spec) -> Self:
        """The same, for a model of the right family; one that cannot be used so all the same is refused."""
        return self

    def adopted(self, spec: Spec) -> Self:
        """The same, with how inputs are prepared where a trained model's own folder says it."""
        return self

    @property
    def decoding(self) -> Decoding:
        """How answers are searched for, of a model that writes."""
        return Decoding()

    def searched_by(self, decoding: Decoding) -> Self:
        """The same, with answers searched for in another way."""
        return self

    def resize_vocab(self, vocab: int) -> int:
        """How many tokens a model should know that knew so many before it began with these."""
        return vocab

    def describe_data(self, splits: Splits[Any]) -> str:
        """What should be known of the samples before they are learned from, in a line; nothing where nothing should."""
        return ""

    def state(self) -> dict[str, Any]:
        """What is kept beside the weights, as JSON."""
        return {}

    def write(self, folder: Path, name: str) -> None:
        """Writes it beside a model, as that of the task or use of a name."""
        text = json.dumps({"task": name, **self.state()}, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / "task.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        """It, as it was written beside a model."""
        return cls()

    @classmethod
    def of(cls, folder: Path) -> Self:
        """It, of a folder that does not say how its model was used before."""
        return cls.read(folder, {})
