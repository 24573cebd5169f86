"""Readers: where samples come from, with the keys of `data` that mean something there, and no others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from heedful.data.near_duplicates import MOST, Cut
from heedful.data.parallel_sample import Column, Sides
from heedful.data.splits import Splits, divide_samples

FILES, MEMORY = "files", "memory"  # the names of data of a user's own: in files, or held
Many = Annotated[int, Field(ge=1, le=10_000_000)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
TooLong = Literal["refuse", "drop", "cut"]
Columns = Column | list[Column] | None


class Reader(BaseModel, ABC):
    """Reader of one kind of data: `data=NAME`, or `data.name=NAME` with keys of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    tasks: ClassVar[tuple[str, ...]] = ()  # that take its samples, of a reader that is found by its name in READERS

    name: str = FILES
    """The data: a built-in or public set, a path, or `files` if `train`, `valid` and `test` name the files."""

    @model_validator(mode="before")
    @classmethod
    def _a_name_alone_will_do(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @abstractmethod
    def read(self, seed: int) -> Splits[Any]:
        """The samples as they are written, to learn from, to choose by and to report on."""

    def open_samples(self, seed: int) -> Splits[Any]:
        """The same, of files in the encoding that they have."""
        return self.read(seed)

    @property
    def cut(self) -> Cut:
        """How one file of it, or what lies in memory, is divided."""
        return Cut()

    def describe_cut(self, splits: Splits[Any]) -> str:
        """What should be known of how many are held out; nothing where that is what was asked for, or a tenth."""
        return ""

    @property
    def held(self) -> Splits[Any] | None:
        """The samples that lie in memory, where they are not read."""
        return None

    def sample(self, given: Any) -> Any:
        """A sample that lies in memory, as this reader gives those of files; of a tuple, of its fields in order."""
        return given

    def from_memory(self, samples: Any) -> Splits[Any]:
        """Samples that lie in memory, as this reader gives those of files: splits, or a sequence to be divided."""
        if isinstance(samples, Splits):
            parts = (samples.train, samples.valid, samples.test)
            return Splits(*([self.sample(part[at]) for at in range(len(part))] for part in parts))
        made = [self.sample(samples[at]) for at in range(len(samples))]
        return divide_samples(made, repr, "what lies in memory", self.cut)

    @property
    def long_samples(self) -> TooLong:
        """What becomes of samples to learn from that are longer than the model reads."""
        return "refuse"

    @property
    def tokens_of(self) -> str:
        """The tokenizer to train or to take; nothing where no text is read."""
        return ""

    def with_tokens_of(self, word: str) -> Self:
        """The same data, read with another tokenizer."""
        return self


class Files(Reader):
    """Reader of a user's own files: one for each split, or one that is divided."""

    train: str | Sides | None = None
    """The file or folder to learn from, or two files: `train.source=` and `train.target=`."""
    valid: str | Sides | None = None
    """The file or folder for validation, by which the best checkpoint is chosen; split off `train` if unset."""
    test: str | Sides | None = None
    """The file or folder that the final score is measured on; split off `train` if unset."""
    encoding: str = "utf-8"
    """The encoding of text files, such as `latin-1`, `cp1252` or `utf-16`."""

    @field_validator("encoding")
    @classmethod
    def _it_is_known(cls, given: str) -> str:
        if given == "utf-8":
            return given
        from heedful.data.text_encoding import encoding_of

        return encoding_of(given)

    def open_samples(self, seed: int) -> Splits[Any]:
        from heedful.data.line_files import read_as

        with read_as(self.encoding):
            return self.read(seed)

    @property
    def cut(self) -> Cut:
        return Cut(valid=self.valid is None, test=self.test is None)


class Made(Reader):
    """Reader of a set that is made on the fly."""

    samples: Many = 20_000
    """How many training samples are made."""
    held_out: Many = 2_000
    """How many test samples are made; a quarter as many are made for validation."""


class Ranged(BaseModel):
    """The keys of samples whose lengths are drawn from a range."""

    longest: Many = 24
    """The length of the longest sequence that is made."""
    shortest: Many = Field(default_factory=lambda data: min(4, data.get("longest", 4)))
    """The length of the shortest sequence that is made; at most 4 if unset."""

    @model_validator(mode="after")
    def _lengths_make_a_range(self) -> Self:
        if self.shortest > self.longest:
            given = f"data.shortest={self.shortest} is above data.longest={self.longest}"
            raise ValueError(f"{given}; lower the one or raise the other")
        return self


class Divided(BaseModel):
    """The key of how one file is divided."""

    split_seed: Seed = 0
    """The seed by which a single file is divided into training, validation and test samples."""


class SampleFiles(Divided, Files):
    """Reader of a user's own samples, each of which can be held out."""

    held_out: Many | None = None
    """How many samples are held out for validation, and as many for testing; if unset, a tenth each, at most 1,000."""

    @property
    def cut(self) -> Cut:
        return Cut(self.split_seed, self.held_out, self.valid is None, self.test is None)

    def describe_cut(self, splits: Splits[Any]) -> str:
        if self.held_out is not None or self.valid is not None or len(splits.train) < 10 * MOST:
            return ""
        return f" ({MOST:,} and no tenth to choose by; data.held_out=N takes more)"


class Bounded(BaseModel):
    """The key of what becomes of samples that are too long."""

    too_long: TooLong = "refuse"
    """What to do with training samples that are longer than the model reads: `refuse`, `drop` or `cut` them."""

    @property
    def long_samples(self) -> TooLong:
        """What becomes of samples to learn from that are longer than the model reads."""
        return self.too_long


class Tokenized(BaseModel):
    """The key of how texts become tokens."""

    tokenizer: str = "characters"
    """A kind of tokenizer to train, such as `bpe(size=8000)`; or a tokenizer.json, a .model or a model's folder."""

    @property
    def tokens_of(self) -> str:
        """The tokenizer to train or to take."""
        return self.tokenizer

    def with_tokens_of(self, word: str) -> Self:
        """The same data, read with another tokenizer."""
        return self.model_copy(update={"tokenizer": word})
