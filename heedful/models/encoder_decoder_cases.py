"""Inputs for encoders, decoders and what is docked of them, and how each law is measured on them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from heedful.models.cases import Cases, Pairs, largest


class Docked(Cases):
    """An encoder docked to a decoder: whatever the one reads, targets of one length."""

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        from heedful.models import FAMILIES  # which knows how to ask the encoder

        spec = self.model.spec
        source = FAMILIES[spec.encoder.family].cases(self.model.encoder).inputs(dtype)[0]
        size = min(9, spec.decoder.longest)
        return source, torch.randint(min(4, spec.vocab - 1), spec.vocab, (len(source), size))

    @property
    def padded(self) -> Callable[[], float] | str:  # type: ignore[override]
        """Sources padded and as they are, where the encoder knows of padding."""
        return self.longer if self.model.encoder.pad is not None else "what it reads is of one size and none is padded"

    def longer(self) -> float:
        """With padding behind the sources against without."""
        source, target = self.inputs(torch.float64)
        more = torch.cat((source, source.new_full((len(source), 3), self.model.encoder.pad)), 1)
        return largest(self.model(source, target), self.model(more, target))

    def remembered(self) -> float:
        """Step by step with a memory against all at once."""
        source, target = self.inputs(torch.float64)
        (field,) = self.model.reads
        context, memory = self.model.begin({field: source}), self.model.memory()
        steps = [self.model.decode(target[:, at : at + 1], context, memory) for at in range(target.shape[1])]
        return largest(self.model(source, target), torch.cat(steps, 1))

    leak = Pairs.leak


class Sources(Cases):
    """An encoder alone: sources of unequal length."""

    remembered = "an encoder writes nothing step by step"
    leak = "an encoder reads its source whole"

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        spec = self.model.spec
        size = min(9, spec.longest - 3)  # room for padding, where one more is asked
        source = torch.randint(min(4, spec.vocab - 1), spec.vocab, (3, size))
        for row in range(1, 3):
            source[row, -(-size * (3 - row) // 3) :] = self.model.pad
        return (source,)

    def padded(self) -> float:
        """Together and padded against each alone."""
        (source,) = self.inputs(torch.float64)
        rows = [row[row != self.model.pad] for row in source]
        together = self.model(source)
        return max(largest(one[: len(row)], self.model(row[None])[0]) for one, row in zip(together, rows, strict=True))


class Targets(Cases):
    """A decoder alone: targets, and the states that it looks at."""

    padded = "what a decoder looks at is padded by its encoder"
    remembered = "a decoder remembers for the model that it is part of"

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        spec = self.model.spec
        target = torch.randint(min(4, spec.vocab - 1), spec.vocab, (3, min(9, spec.longest)))
        return target, torch.randn(3, 5, self.model.width, dtype=dtype)

    def leak(self) -> float:
        """The first half before one second half against before another."""
        target, states = self.inputs(torch.float64)
        half = target.shape[1] // 2
        other = torch.cat((target[:, :half], target[:, half:].flip(0).roll(1, 1)), 1)
        return largest(self.model(target, states)[:, :half], self.model(other, states)[:, :half])
