"""Texts and pairs of them, tokenised: samples of an encoder, and their batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from heedful.data.collate import Batch, stack
from heedful.tokenizers import Joined
from heedful.tokenizers.char_ngrams import ngrams_of


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A sample as it was read, with its `texts` and its `place`; its tokens, and what should be answered."""

    read: Any
    joined: Joined
    answer: Any = None
    at: int = 0  # its number
    dice: int | None = None  # by which words are hidden, while learning

    @property
    def label(self) -> str:
        """Its class, where it has one."""
        label: str = self.read.label
        return label

    @property
    def tabbed(self) -> str:
        """Its texts in one line, a tab between them."""
        return "\t".join(" ".join(text.split()) for text in self.read.texts)


def batch_of(joined: Sequence[Joined], letters: int = 0) -> Batch:
    """Inputs as tensors, padded at the end: tokens, segments (B T), lengths, perhaps tasks (B) and letters (B T K)."""
    lengths = torch.tensor([len(one.ids) for one in joined])
    segments = stack([one.segments for one in joined])
    made = {"tokens": stack([one.ids for one in joined]), "segments": segments, "lengths": lengths}
    tasks = [one.task for one in joined if one.task is not None]
    made |= {"tasks": torch.tensor(tasks)} if tasks else {}
    return made | {"letters": torch.from_numpy(ngrams_of(joined, letters))} if letters else made
