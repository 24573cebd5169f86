"""Readers of pairs of texts (parallel text): made on the fly, of a public set, or of a user's own files."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

from pydantic import BaseModel, model_validator

from heedful.data.near_duplicates import same_spelling
from heedful.data.parallel_sample import Column, Pair, Sides
from heedful.data.readers.reader import Bounded, Made, Ranged, Reader, SampleFiles, Share, Tokenized
from heedful.data.splits import Splits, divide_samples, open_splits
from heedful.errors import Refusal, unknown_word

PARALLEL = {"multi30k": {"train": "train", "valid": "val", "test": "test_2016_flickr"}}  # public sets, and their splits
FORMS = {"raw": "raw/{split}.{language}", "tok": "tok/{split}.lc.norm.tok.{language}"}


class Paired(Tokenized, Bounded):
    """The keys of pairs of texts that become tokens."""

    merge_dropout: Share = 0.0
    """The share of BPE merges left out at random in training (BPE-dropout; Provilkov et al., 2020)."""


class Scored(BaseModel):
    """The key of how translations are scored."""

    bleu: Literal["none", "13a", "intl", "char", "zh"] = "13a"
    """The tokenizer that sacrebleu uses for BLEU; `none` if the texts are tokenised already."""


class Reversed(Paired, Ranged, Made):
    """Sequences of digits and letters, and the same backwards."""

    def read(self, seed: int) -> Splits[Pair]:
        from heedful.data.toys import series_sets

        return series_sets.reverse(self, seed)


class Sorted(Paired, Ranged, Made):
    """Sequences of digits and letters, and the same in order."""

    def read(self, seed: int) -> Splits[Pair]:
        from heedful.data.toys import series_sets

        return series_sets.sort(self, seed)


class Invented(Paired, Made):
    """Captions in English and in an invented language, and which of their words belong together."""

    def read(self, seed: int) -> Splits[Pair]:
        from heedful.data.toys import series_sets

        return series_sets.invent_captions(self, seed)


class News(Paired, Made):
    """Invented reports and their headlines."""

    def read(self, seed: int) -> Splits[Pair]:
        from heedful.data.toys.summaries import news

        return news(self, seed)


class PublicPairs(Paired, Reader):
    """A public set of translations, which lies here in several languages."""

    languages: str = ""
    """The source and the target language, such as `en-de`."""
    form: Literal["raw", "tok"] | None = None
    """Which files to read: `raw`, as they were written (the default), or `tok`, lower-cased and tokenised."""

    def read(self, seed: int) -> Splits[Pair]:
        from heedful.data.formats import parallel_text

        return Splits(*(parallel_text.read_pairs(public(self, split)) for split in ("train", "valid", "test")))


class PairFiles(Paired, SampleFiles):
    """Your own pairs: a TSV with a source, a tab and a target on each line, or two files with a line for each pair."""

    source: Column | None = None
    """The column of the sources in a table, by name or number."""
    target: Column | None = None
    """The column of the targets in a table, by name or number."""

    @model_validator(mode="after")
    def _columns_are_told_whole(self) -> Self:
        if (self.source is None) is not (self.target is None):
            told, other = ("source", "target") if self.target is None else ("target", "source")
            raise ValueError(f"data.{told} names a column and data.{other} none; give both, or neither")
        return self

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the source and of the target; none where a file has these two alone."""
        return (self.source, self.target) if self.source is not None and self.target is not None else ()

    def sample(self, given: Any) -> Pair:
        """A source and its target."""
        from heedful.data.held_values import text_in_memory

        if isinstance(given, Pair):
            return given
        source, target = map(text_in_memory, given)
        return Pair(source, target)

    def read(self, seed: int) -> Splits[Pair]:
        from heedful.data.formats import parallel_text

        def divide(pairs: list[Pair], what: str) -> Splits[Pair]:
            return divide_samples(pairs, lambda pair: same_spelling(pair.source), what, self.cut)

        read = partial(parallel_text.read_pairs, names=self.columns)
        return open_splits(self, read, divide, tuple(name for name in READERS if name != "files"))


READERS: dict[str, type[Reader]] = {
    "reverse": Reversed,
    "sort": Sorted,
    "invented": Invented,
    "news": News,
    "multi30k": PublicPairs,
    "files": PairFiles,
}


def public(reader: PublicPairs, split: str) -> Sides:
    """The two files of a public set of translations."""
    from heedful.data.public import download

    home, name, form = download.home(reader.name), PARALLEL[reader.name][split], reader.form or "raw"
    languages = reader.languages.split("-")
    if len(languages) != 2 or languages[0] == languages[1]:
        raise Refusal(f"data.languages={reader.languages!r} names no two languages; write data.languages=en-de")
    paths = []
    for language in languages:
        plain = home / FORMS[form].format(split=name, language=language)
        path = next((path for path in (plain, plain.with_name(f"{plain.name}.gz")) if path.is_file()), None)
        if path is None:
            there = {file.name.removesuffix(".gz").split(".")[-1] for file in plain.parent.glob(f"{name}.*")}
            raise unknown_word(f"language of {reader.name} ({form})", language, there)
        paths.append(str(path))
    return Sides(source=paths[0], target=paths[1])
