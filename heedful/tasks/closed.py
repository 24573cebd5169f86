"""What a task is: how a batch becomes a loss, how a model is scored, asked and looked into."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.data_spec import DataSpec
from heedful.data.near_duplicates import Content, Overlap, overlaps
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking.page import Samples
from heedful.models import Spec
from heedful.objectives.objective import Loss
from heedful.tasks.use import Use
from heedful.views.finding import Finding


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

    def losses(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> dict[str, Loss]:
        """The losses of a batch by name."""
        return {"loss": Loss(*self.loss(model, batch, terms))}

    def loss_counts(self, batch: Batch) -> dict[str, Tensor]:
        """How many there are of each loss in a batch, where they are not as many as of the first."""
        return {}

    def loss_names(self, terms: Terms) -> tuple[str, ...]:
        """The names of the losses, the same for every batch."""
        return ("loss",)

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
