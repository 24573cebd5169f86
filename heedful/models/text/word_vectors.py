"""One vector for each word, wherever it stands: word2vec (Mikolov et al., 2013), GloVe (Pennington et al., 2014)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from heedful.models.family import Family, Model
from heedful.models.specs import Count, Spec


class WordVectorsSpec(Spec):
    """Numbers of word vectors: how many words, and how wide."""

    family: Literal["word_vectors"] = "word_vectors"
    width: Count = 128
    """The width of the word vectors."""
    vocab: Count
    """The number of words; filled in from the data."""
    biased: bool = False
    """Whether each word has a bias and its vector is the sum of two tables, as in GloVe."""


class WordVectors(Model):
    """Says how well two words go together: by a vector of the one, and another of what stands near it."""

    counts: Tensor

    def __init__(self, spec: WordVectorsSpec) -> None:
        super().__init__()
        s = self.spec = spec
        self.table, self.near = nn.Embedding(s.vocab, s.width), nn.Embedding(s.vocab, s.width)
        for table in (self.table, self.near):
            nn.init.uniform_(table.weight, -0.5 / s.width, 0.5 / s.width)
        self.bias = nn.Parameter(torch.zeros(s.vocab, 2)) if s.biased else None
        self.register_buffer("counts", torch.zeros(s.vocab))  # of each word, in the texts that were learned from

    def forward(self, words: Tensor, others: Tensor) -> Tensor:
        """Scores of words with others near them, at any shapes that broadcast."""
        scores = (self.table(words) * self.near(others)).sum(-1)
        return scores if self.bias is None else scores + self.bias[words, 0] + self.bias[others, 1]

    @property
    def vectors(self) -> Tensor:
        """The vectors of all words: V M."""
        return self.table.weight if self.bias is None else self.table.weight + self.near.weight


FAMILY = Family(WordVectorsSpec, WordVectors, {"vocab": 11}, "heedful.models.cases:WordPairs")
