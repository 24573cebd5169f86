"""The laws, proved on a trained model: padding, memory, the future, looking, and saving change nothing."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from heedful.attention import Memory
from heedful.checkpoints import store
from heedful.errors import Refusal
from heedful.looking import look
from heedful.models import MAE, Forecaster, LeNet, Predictor, ResNet, Spec, Swin, ViT
from heedful.models.bert import Bert
from heedful.models.encoder_decoder import EncoderDecoder

CLOSE = 1e-9  # in float64


@dataclass(frozen=True)
class Law:
    """A law, whether it holds, and what was measured."""

    name: str
    holds: bool
    detail: str
    applies: bool = True

    @property
    def said(self) -> str:
        """One word for the verdict."""
        return ("holds" if self.holds else "FAILS") if self.applies else "n/a"


@torch.no_grad()
def checks(model: nn.Module) -> Iterator[Law]:
    """Each law in turn, on random inputs that the model can take."""
    torch.manual_seed(0)
    model = model.cpu().eval()
    exact = copy.deepcopy(model).double()
    kinds = [kind for family, kind in KINDS.items() if isinstance(model, family)]
    if not kinds:
        raise Refusal(
            f"the laws of a {type(model).__name__} are not among those that can be proved here; tests hold them"
        )
    cases = kinds[0](exact)
    yield within("padded == unpadded", cases.padded)
    yield within("with memory == without", cases.remembered)
    yield within("the future never leaks", cases.leak)
    yield same("looking changes no bit", model, cases)
    yield reloaded("save, load, same outputs", model, cases)


def within(name: str, measure: Callable[[], float] | str) -> Law:
    """A law on two ways to the same numbers."""
    if isinstance(measure, str):
        return Law(name, True, measure, applies=False)
    gap = measure()
    return Law(name, gap <= CLOSE, f"largest difference {gap:.1e} in float64")


def same(name: str, model: nn.Module, cases: Cases) -> Law:
    """The outputs with and without looking, bit by bit."""
    inputs = cases.inputs(next(model.parameters()).dtype)
    before = model(*inputs)
    with look(model) as seen:
        during = model(*inputs)
    return Law(
        name, torch.equal(before, during), f"{len(seen.paths)} layers looked at, {before.numel():,} outputs compared"
    )


def reloaded(name: str, model: nn.Module, cases: Cases) -> Law:
    """The outputs of the model and of its own copy from a folder, bit by bit."""
    inputs = cases.inputs(next(model.parameters()).dtype)
    with tempfile.TemporaryDirectory() as folder:
        store.save(model, Path(folder) / "model")
        again = store.load(Path(folder) / "model").to(next(model.parameters()).dtype)
    return Law(name, torch.equal(model(*inputs), again(*inputs)), "bit by bit")


class Cases:
    """Inputs for one family, and how each law is measured on it."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """Random inputs of unequal length."""
        raise NotImplementedError

    padded: Callable[[], float] | str
    remembered: Callable[[], float] | str
    leak: Callable[[], float] | str


class Pairs(Cases):
    """An encoder-decoder: sources of unequal length, targets of one."""

    model: EncoderDecoder

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        pad, size = self.model.special.pad, min(12, cast(Spec, self.model.spec).length)
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

    model: Predictor
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


class Readings(Cases):
    """An encoder of text: sentences of unequal length, padded on either side."""

    model: Bert
    remembered = "an encoder writes nothing step by step"
    leak = "an encoder reads its input whole"

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


class Forecasts(Cases):
    """A decoder over numbers."""

    model: Forecaster

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

    model: ViT | Swin | ResNet | LeNet
    padded = "images are of one size and none is padded"
    remembered = "a model of images writes nothing step by step"
    leak = "a model of images reads its image whole"

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        spec = self.model.spec
        return (torch.rand(3, spec.channels, spec.high, spec.wide, dtype=dtype),)


class HiddenPictures(Pictures):
    """A masked autoencoder: images, and the patches that are seen."""

    model: MAE  # type: ignore[assignment]

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, ...]:
        (images,) = super().inputs(dtype)
        rows, columns = self.model.inputs.shape(images)
        return images, torch.rand(len(images), rows * columns).argsort(1)[:, : max(1, rows * columns // 4)]


def largest(one: Tensor, two: Tensor) -> float:
    """The largest difference; not a number counts as infinite."""
    gap = (one - two).abs().max()
    return float(gap) if gap.isfinite() else float("inf")


KINDS: dict[type[nn.Module], type[Cases]] = {
    EncoderDecoder: Pairs,
    Predictor: Predictions,
    Forecaster: Forecasts,
    Bert: Readings,
    ViT: Pictures,
    Swin: Pictures,
    ResNet: Pictures,
    LeNet: Pictures,
    MAE: HiddenPictures,
}
