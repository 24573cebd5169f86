"""Inputs for every family of models, and how each law is measured on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import Memory


class Cases:
    """Inputs for one family, and how each law is measured on it."""

    def __init__(self, model: nn.Module) -> None:
        self.model: Any = model  # of the family that named these

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """Random inputs of unequal length."""
        raise NotImplementedError

    padded: Callable[[], float] | str
    remembered: Callable[[], float] | str
    leak: Callable[[], float] | str


class Pairs(Cases):
    """An encoder-decoder: sources of unequal length, targets of one."""

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        pad, size = self.model.special.pad, min(12, self.model.spec.length)
        read, written = self.model.source.table.num_embeddings, self.model.inputs.table.num_embeddings
        source = torch.randint(min(4, read - 1), read, (3, size))
        source[source == pad] = read - 1 if pad != read - 1 else 0
        for row in range(1, 3):
            source[row, -(-size * (3 - row) // 3) :] = pad
        return source, torch.randint(min(4, written - 1), written, (3, size))

    def padded(self) -> float:
        """Together and padded against each alone."""
        source, target = self.inputs(torch.float64)
        together = self.model(source, target)
        alone = [self.model(s[s != self.model.special.pad][None], t[None]) for s, t in zip(source, target, strict=True)]
        return largest(together, torch.cat(alone))

    def remembered(self) -> float:
        """Step by step with a memory against all at once."""
        source, target = self.inputs(torch.float64)
        context, memory = self.model.encode(source).kept(), Memory(4)
        steps = [self.model.decode(target[:, at : at + 1], context, memory) for at in range(target.shape[1])]
        return largest(self.model(source, target), torch.cat(steps, 1))

    def leak(self) -> float:
        """The first half before one second half against before another."""
        source, target = self.inputs(torch.float64)
        half = target.shape[1] // 2
        other = torch.cat((target[:, :half], target[:, half:].flip(0).roll(1, 1)), 1)
        return largest(self.model(source, target)[:, :half], self.model(source, other)[:, :half])


class Predictions(Cases):
    """An encoder with an answer: sequences or sets of unequal size."""

    remembered = "a predictor writes nothing step by step"
    leak = "a predictor reads its input whole"

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        spec = self.model.spec
        size = min(9, spec.length)
        lengths = torch.tensor([size, max(1, size // 2), 1])
        if spec.vocab:
            there = torch.arange(size) < lengths[:, None]
            return torch.randint(1, spec.vocab, (3, size)) * there, lengths
        return torch.randn(3, size, spec.channels or 1, dtype=dtype), lengths

    def padded(self) -> float:
        """Together and padded against each alone."""
        x, lengths = self.inputs(torch.float64)
        together = self.model(x, lengths)
        alone = [self.model(row[None, :n], n[None]) for row, n in zip(x, lengths, strict=True)]
        if together.dim() == 2:
            return largest(together, torch.cat(alone))
        return max(largest(row[:n], one[0]) for row, n, one in zip(together, lengths, alone, strict=True))


class Sequences(Predictions):
    """Sequences of tokens of unequal length."""

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        lengths = torch.tensor([9, 4, 1])
        return torch.randint(1, self.model.spec.vocab, (3, 9)) * (torch.arange(9) < lengths[:, None]), lengths


class Readings(Cases):
    """A model that is asked of a text: sentences of unequal length, padded on either side."""

    remembered = "a model that is asked of a text writes nothing step by step"
    leak = "what is asked of a text is asked of it whole"

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        spec = self.model.spec
        size = min(12, spec.length)
        tokens = torch.randint(min(4, spec.vocab - 1), spec.vocab, (3, size))
        columns = torch.arange(size)
        there = torch.stack((columns >= 0, columns < -(-size // 2), columns >= size // 3))
        return tokens, torch.where(there, there.cumsum(-1) - 1, -1)

    def padded(self) -> float:
        """Together and padded against each alone."""
        tokens, positions = self.inputs(torch.float64)
        together = self.model(tokens, positions)
        there = positions >= 0
        rows = zip(together, tokens, positions, there, strict=True)
        return max(
            largest(answer[kept] if together.dim() > 2 else answer, self.model(row[None, kept], at[None, kept])[0])
            for answer, row, at, kept in rows
        )


class Continuations(Cases):
    """A decoder of text: texts of unequal length, padded on the left."""

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        spec = self.model.spec
        return (torch.randint(min(4, spec.vocab - 1), spec.vocab, (3, min(12, spec.length))),)

    def padded(self) -> float:
        """Together and padded against each alone."""
        (tokens,) = self.inputs(torch.float64)
        size = tokens.shape[1]
        before = torch.tensor([0, size // 2, size // 3])[:, None]
        places = torch.where(torch.arange(size) >= before, torch.arange(size) - before, -1)
        together = self.model(tokens, positions=places)
        rows = zip(together, tokens, before.flatten().tolist(), strict=True)
        return max(largest(answer[first:], self.model(row[None, first:])[0]) for answer, row, first in rows)

    def remembered(self) -> float:
        """Step by step with a memory against all at once."""
        (tokens,) = self.inputs(torch.float64)
        memory = Memory(4)
        steps = [self.model(tokens[:, at : at + 1], memory) for at in range(tokens.shape[1])]
        return largest(self.model(tokens), torch.cat(steps, 1))

    def leak(self) -> float:
        """The first half before one second half against before another."""
        (tokens,) = self.inputs(torch.float64)
        half = tokens.shape[1] // 2
        other = torch.cat((tokens[:, :half], tokens[:, half:].flip(0).roll(1, 1)), 1)
        return largest(self.model(tokens)[:, :half], self.model(other)[:, :half])


class Forecasts(Cases):
    """A decoder over numbers."""

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        spec, model = self.model.spec, self.model
        noise = torch.randn(3, min(12, spec.length), spec.channels, dtype=dtype)
        return (noise * model.deviation.to(dtype) + model.mean.to(dtype),)

    def padded(self) -> float:
        """With zeros behind it against the series alone."""
        (series,) = self.inputs(torch.float64)
        half = series.shape[1] // 2
        cut = torch.cat((series[:, :half], torch.zeros_like(series[:, half:])), 1)
        return largest(self.model(cut)[:, :half], self.model(series[:, :half]))

    def remembered(self) -> float:
        """Step by step with a memory against all at once."""
        (series,) = self.inputs(torch.float64)
        memory = Memory(4)
        steps = [self.model(series[:, at : at + 1], memory) for at in range(series.shape[1])]
        return largest(self.model(series), torch.cat(steps, 1))

    def leak(self) -> float:
        """The first half before one second half against before another."""
        (series,) = self.inputs(torch.float64)
        half = series.shape[1] // 2
        other = torch.cat((series[:, :half], series[:, half:].flip(1) + 1), 1)
        return largest(self.model(series)[:, :half], self.model(other)[:, :half])


class Pictures(Cases):
    """A model of images: those of its own size."""

    padded = "images are of one size and none is padded"
    remembered = "a model of images writes nothing step by step"
    leak = "a model of images reads its image whole"

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        spec = self.model.spec
        return (torch.rand(3, spec.channels, spec.high, spec.wide, dtype=dtype),)


class HiddenPictures(Pictures):
    """A masked autoencoder: images, and the patches that are seen."""

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        (images,) = super().inputs(dtype)
        rows, columns = self.model.inputs.shape(images)
        return images, torch.rand(len(images), rows * columns).argsort(1)[:, : max(1, rows * columns // 4)]


def largest(one: Tensor, two: Tensor) -> float:
    """The largest difference; not a number counts as infinite."""
    gap = (one - two).abs().max()
    return float(gap) if gap.isfinite() else float("inf")


class WordPairs(Cases):
    """Word vectors: words, and others near them."""

    padded = "words are read one by one and none is padded"
    remembered = "word vectors write nothing step by step"
    leak = "words are read one by one"

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        words = torch.randint(0, self.model.spec.vocab, (2, 9))
        return words[0], words[1]
