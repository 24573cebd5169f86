"""What a task is: how a batch becomes a loss, how a model is scored, asked and looked into."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from heedful.data.data_spec import DataSpec
from heedful.data.near_duplicates import Content, Overlap, overlaps
from heedful.data.splits import Splits
from heedful.errors import Failure, Refusal
from heedful.looking.look import Seen
from heedful.looking.maps import Map
from heedful.looking.page import Figures, Samples, Section
from heedful.models import Spec
from heedful.tasks.use import Use

Batch = dict[str, Tensor]
Ids = Sequence[int] | NDArray[np.int64]
Read = TypeVar("Read")
Given = TypeVar("Given")


@dataclass(frozen=True)
class Finding:
    """What the attention of a model shows, in figures, and which layer and head shows it best."""

    figures: Figures
    layer: str
    head: str  # a number, or "mean" of the layer's heads
    more: tuple[Section, ...] = ()  # of a report, beside the figures


@dataclass(frozen=True)
class Terms:
    """What a loss is asked for beside the task itself; 0 is nothing."""

    smoothing: float = 0.0  # of labels (Szegedy et al., 2016)
    consistency: float = 0.0  # between two passes with other dropout: R-Drop (Liang et al., 2021)
    guidance: float = 0.0  # of attention, by given alignments (Chen et al., 2016)
    disagreement: float = 0.0  # of heads with one another (Li et al., 2018)
    policy: float = 0.0  # gradient for edges that are chosen (SAC: Li et al., 2020)
    guided: float = 0.0  # heads, towards plain patterns (Deshpande and Narasimhan, 2020)
    span: float = 0.0  # of heads, where it is learned: what a position of it costs (Sukhbaatar et al., 2019)

    @classmethod
    def of(cls, training: Any) -> Self:
        """What a run's training asks for."""
        return cls(**{field.name: getattr(training, field.name) for field in fields(cls)})


PLAIN = Terms()
ALL = frozenset({"name", "train", "valid", "test", "samples", "held_out"})  # keys of `data` that every task knows


class Task(Use):
    """What is learned and how it is scored. The model maps; the task judges."""

    family: ClassVar[str]  # of the models that can learn it
    also: ClassVar[tuple[str, ...]] = ()  # other families that can
    watch: ClassVar[str]  # the score to choose by; more is better
    ordered: ClassVar[bool]  # whether the order of the inputs matters
    terms: ClassVar[frozenset[str]] = frozenset()  # of its loss, that it knows: those of Terms
    keys: ClassVar[frozenset[str]]  # of `data`, that it knows beside those of ALL
    even: ClassVar[bool] = False  # its samples are all of one shape, so that no batch need be filled up
    filled: bool = False  # zeros in a batch mean nothing to its loss, so that it can be filled up with them
    inherits: ClassVar[bool] = False  # `start` gives it the numbers of its model and the tokenizer too
    told: ClassVar[int] = 0  # samples that are shown at every evaluation

    @classmethod
    @abstractmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Any]]:
        """The task and its samples, as the data say."""

    @abstractmethod
    def reopen(self, data: DataSpec, seed: int) -> Splits[Any]:
        """Samples of other data, as this very task takes them."""

    @classmethod
    def hears(cls, data: Mapping[str, Any]) -> None:
        """Refuses keys of `data` that mean nothing to it, where they say something else than they do by default."""
        for key, field in DataSpec.model_fields.items():
            plain = field.get_default(call_default_factory=True, validated_data=dict(data))
            if key not in ALL | cls.keys and data.get(key, plain) != plain:
                raise Refusal(f"data.{key} is nothing that task {cls.name!r} knows; leave it out")

    def asked(self, terms: Terms, splits: Splits[Any]) -> None:
        """Hears what its loss will be asked for; refuses what the samples do not allow."""
        return

    def defaults(self) -> dict[str, Any]:
        """What it says of the model where nothing else does."""
        return {}

    def grown(self, vocab: int) -> int:
        """How many tokens a model should know that knew so many before it began with this."""
        return vocab

    def noted(self, splits: Splits[Any]) -> str:
        """What should be known of the samples before they are learned from, in a line; nothing where nothing should."""
        return ""

    def contents(self, sample: Any) -> Mapping[str, Content]:
        """The parts of a sample, by name, whose near-duplicates should not be both learned from and tested on."""
        return {}

    def overlaps(self, splits: Splits[Any]) -> tuple[Overlap, ...]:
        """How much of what is held out has near-duplicates in what is learned from."""
        return overlaps(splits, self.contents)

    def shortened(self, sample: Any, longest: int) -> Any:
        """A sample that is cut where it is longer than a model reads."""
        raise Refusal(f"data.too_long=cut is nothing that task {self.name!r} knows; use refuse or drop")

    def taught_by(self, teacher: nn.Module, task: Task, spec: Spec) -> None:
        """Hears of a trained model that teaches, and of its task; refuses where nothing can be learned from it."""
        raise Refusal(f"teacher is nothing that task {self.name!r} knows; leave it out")

    def prepare(self, model: nn.Module) -> None:
        """Tells a fresh model what it should know of the data beforehand."""
        return

    def stepped(self, model: nn.Module, done: float, together: Callable[[Tensor], Tensor]) -> None:
        """Hears that a step was taken and how much of the run is done; `together` sums over all processes."""
        return

    def kept(self, model: nn.Module) -> nn.Module:
        """What is left of a model that has learned, to be scored, looked into and written."""
        return model

    @abstractmethod
    def length(self, sample: Any) -> int:
        """How long a sample is, to the model."""

    def lengths(self, samples: Sequence[Any], epoch: int) -> Sequence[Any]:
        """How long samples to learn from are in an epoch: a number each, or several, one for each side."""
        return [self.length(sample) for sample in samples]

    def place(self, sample: Any) -> str:
        """Where a sample was read: its longest side's file and line, where it came from a file."""
        return "a sample"

    def fresh(self, samples: Sequence[Any], epoch: int) -> Sequence[Any]:
        """Samples as they are learned from in an epoch: a pure function of the seed, the epoch and the sample."""
        return samples

    @abstractmethod
    def batch(self, samples: Sequence[Any]) -> Batch:
        """Samples as tensors, padded at the end."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        """The sum of the losses and how many there are; the loop divides."""

    @abstractmethod
    def score(self, model: nn.Module, samples: Sequence[Any]) -> dict[str, float]:
        """How good the model is on samples that it has not seen, shares as fractions."""

    @abstractmethod
    def show(self, model: nn.Module, samples: Sequence[Any]) -> Samples:
        """Samples with the model's answers, as a table for people."""

    @abstractmethod
    def write_input(self, sample: Any) -> str:
        """A sample's input as `predict` and `look` take it."""

    def settle(self, model: nn.Module, splits: Splits[Any]) -> None:
        """Chooses, on validation data and once the model has learned, what must be kept beside it."""
        return

    def finding(self, model: nn.Module, samples: Sequence[Any]) -> Finding | None:
        """What the attention of this task shows, where it shows something that can be measured."""
        return None


def device_of(model: nn.Module) -> torch.device:
    """Where a model's weights lie."""
    return next(model.parameters()).device


def nonempty(text: str, what: str) -> str:
    """The input itself, or a refusal where it is empty."""
    if not text.strip():
        raise Refusal(f"the input is empty; give {what}")
    return text


def read_all(inputs: Iterable[Given], read: Callable[[Given], Read]) -> list[Read]:
    """Every input as `read` takes it, before the first is answered; one that is refused is told by its number."""
    made: list[Read] = []
    for text in inputs:
        try:
            made.append(read(text))
        except Refusal as refused:
            raise Refusal(f"input {len(made) + 1}: {refused}") from None
    return made


def several(inputs: Sequence[Read], size: int = 256) -> Iterator[Sequence[Read]]:
    """Inputs in groups of at most `size`, in order."""
    return (inputs[start : start + size] for start in range(0, len(inputs), size))


def to(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device."""
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}


def pinned(batch: Batch) -> Batch:
    """The batch where a GPU can fetch it while other work goes on."""
    return {name: tensor.pin_memory() for name, tensor in batch.items()}


def maps(seen: Seen, words: Callable[[str], tuple[Sequence[str], Sequence[str]]]) -> tuple[Map, ...]:
    """All that was seen of a batch of one; `words` gives a path's words, who looks and what is looked at.

    An attention that several layers share was called by each: its calls are numbered.
    """
    made = []
    for path in seen.paths:
        rows, columns = words(path)
        for call in range(seen.calls(path)):
            name = path if seen.calls(path) == 1 else f"{path}[{call}]"
            weights = seen.weights(path, call=call)[0].detach().float().cpu()
            made.append(Map(name, weights, fitting(rows, weights.shape[-2]), fitting(columns, weights.shape[-1])))
    return tuple(made)


def fitting(words: Sequence[str], count: int) -> tuple[str, ...]:
    """The words, where there are as many; else numbers: a kind may look from or at nodes of its own that none names."""
    return tuple(words) if len(words) == count else tuple(f"node {at}" for at in range(count))


def pick(samples: Sequence[Any], count: int) -> list[Any]:
    """A few samples, spread evenly over all."""
    step = max(1, len(samples) // count)
    return list(samples[::step][:count])


def finite(scores: Tensor) -> Tensor:
    """A model's scores as they are; not finite ones are a failure, for they would be answered as if all were well."""
    if not scores.isfinite().all():
        raise Failure("the model's scores are not numbers, so it has no answer; train it at a lower rate")
    return scores


def unit(vectors: Tensor) -> Tensor:
    """Vectors brought to a length of one, so that products are cosines; a length beyond all numbers is a failure."""
    finite(vectors.norm(dim=-1))
    return normalize(vectors, dim=-1)


def precise(x: Tensor) -> Tensor:
    """In float32 or better, as losses are summed."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def stack(rows: Sequence[Ids], first: Sequence[int] = (), last: Sequence[int] = (), pad: int = 0) -> Tensor:
    """Rows of ids of unequal length, each between `first` and `last`, as one tensor, padded at the end: B T."""
    lengths = np.array([len(row) + len(first) + len(last) for row in rows], dtype=np.int64)[:, None]
    at = np.arange(int(lengths.max(initial=0)))
    made = np.full((len(rows), len(at)), pad, dtype=np.int64)
    if len(rows):
        made[(at >= len(first)) & (at < lengths - len(last))] = np.concatenate(rows)
        made[:, : len(first)] = first
        for place, token in enumerate(last):
            np.put_along_axis(made, lengths - len(last) + place, token, 1)
    return torch.from_numpy(made)
