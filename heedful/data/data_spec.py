"""Which data a run reads: a set made on the fly, the user's own files, or `toy`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from heedful.data.sides import Sides

Many = Annotated[int, Field(ge=1, le=10_000_000)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Stride = Annotated[int, Field(ge=0, lt=2**31)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
OUTER = re.compile(r",\s*(?![^()]*\))")  # commas between words; YAML cuts a list at those within a word's brackets too


class DataSpec(BaseModel):
    """`data=toy`, `data=pairs.tsv`, or `data.train=... data.valid=... data.test=...`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = "files"  # toy, the name of a built-in set, a path, or `files` where train is given
    train: str | Sides | None = None
    valid: str | Sides | None = None
    test: str | Sides | None = None
    samples: Many = 20_000  # how many are made for training, where they are made
    held_out: Many = 2_000  # how many are made for testing; a quarter as many for validation
    longest: Many = 24
    shortest: Many = Field(default_factory=lambda data: min(4, data.get("longest", 4)))
    horizon: Many = 24  # steps of a series to forecast
    dimensions: Many = 5  # of inputs to maps that are drawn
    split_seed: Seed = 0  # of the division of one file into samples to learn, choose and test
    languages: str = ""  # of a public set of translations: en-de
    form: Literal["raw", "tok", "sentences", "phrases", "glue"] | None = (
        None  # of a public set: translations as written (raw), or lower-cased and tokenised (tok); parts of sst
    )
    tokenizer: str = "characters"  # a kind to train, as bpe(size=8000), a tokenizer.json, a .model, a model's folder
    merge_dropout: Share = 0.0  # of BPE's merges, left out at random while learning (Provilkov et al., 2020)
    too_long: Literal["refuse", "drop", "cut"] = "refuse"  # samples to learn from that are longer than the model
    pixels: Annotated[list[Many], Field(min_length=2, max_length=2)] | None = (
        None  # of images: high and wide, or a side
    )
    channels: Annotated[int, Field(ge=1, le=512)] | None = (
        None  # of images in files: 1 is grey, 3 is colour, 2 and 4 have transparency too; arrays (.npy) have any number
    )
    broken: Literal["refuse", "skip"] = "refuse"  # images that cannot be read
    augment: list[str] = []  # how images are varied while learning: flip, crop(padding=4), trivial, mixup, ...
    document: Literal["file", "paragraph", "line"] = "file"  # what of a text file is a text of its own
    apart: bool = True  # texts that stand in one row see nothing of one another
    divide: Literal["auto", "file", "share"] = "auto"  # one path of texts: by file (auto: from 20 files on) or by share
    stride: Stride = 0  # tokens between two windows that are scored; 0: they do not overlap
    noise: Share | None = None  # of tokens that are hidden while learning; where not given, as the task's paper has it
    whole_words: bool = False  # are hidden as one, where tokens are parts of them
    near: Annotated[int, Field(ge=1, le=100)] = 5  # words on either side that word vectors are learned from
    negatives: Annotated[int, Field(ge=1, le=100)] = 5  # words by chance, for each word
    frequent: Share = 0.001  # of all words: more frequent ones are left out now and then; 0: none
    bleu: Literal["none", "13a", "intl", "char", "zh"] = "13a"  # how sacrebleu splits words; none: they are split

    @field_validator("pixels", mode="before")
    @classmethod
    def _a_side_will_do(cls, given: Any) -> Any:
        return [given, given] if isinstance(given, int | str) else given

    @field_validator("augment", mode="before")
    @classmethod
    def _a_word_will_do_and_is_whole(cls, given: Any) -> Any:
        pieces = [given] if isinstance(given, str) else given
        if not isinstance(pieces, list) or not pieces or not all(isinstance(piece, str) for piece in pieces):
            return given
        return OUTER.split(", ".join(pieces))

    @model_validator(mode="before")
    @classmethod
    def _a_name_alone_will_do(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @property
    def long_samples(self) -> Literal["refuse", "drop", "cut"]:
        """What becomes of samples to learn from that are longer than the model reads."""
        return self.too_long

    @property
    def tokens_of(self) -> str:
        """The tokenizer to train or to take."""
        return self.tokenizer

    def with_tokens_of(self, word: str) -> DataSpec:
        """The same data, read with another tokenizer."""
        return self.model_copy(update={"tokenizer": word})

    @model_validator(mode="after")
    def _lengths_make_a_range(self) -> DataSpec:
        if self.shortest > self.longest:
            given = f"data.shortest={self.shortest} is above data.longest={self.longest}"
            raise ValueError(f"{given}; lower the one or raise the other")
        return self
