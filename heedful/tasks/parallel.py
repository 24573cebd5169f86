"""Parallel text: pairs made on the fly, public sets and a user's own files, and the tokenizer that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.data.data_spec import DataSpec
from heedful.data.formats import parallel_text as read_pairs
from heedful.data.formats.parallel_text import Pair
from heedful.data.near_duplicates import same_spelling
from heedful.data.public import download
from heedful.data.sides import Sides
from heedful.data.splits import Splits, divided, opened
from heedful.data.toys import series_sets
from heedful.data.toys.summaries import news
from heedful.errors import Refusal, unknown
from heedful.pipelines.choose_tokenizer import tokenizer_of
from heedful.tokenizers import Tokenizer

MADE: dict[str, Callable[[DataSpec, int], Splits[Pair]]] = {
    "reverse": series_sets.reverse,
    "sort": series_sets.sort,
    "invented": series_sets.invented,
    "news": news,
}
PARALLEL = {"multi30k": {"train": "train", "valid": "val", "test": "test_2016_flickr"}}  # public sets, and their splits
FORMS = {"raw": "raw/{split}.{language}", "tok": "tok/{split}.lc.norm.tok.{language}"}


def texts(data: DataSpec, seed: int) -> Splits[Pair]:
    """Pairs made on the fly, of a public set, or a user's own."""
    if data.name in MADE:
        return MADE[data.name](data, seed)
    if data.name in PARALLEL:
        return Splits(*(read_pairs.read(public(data, split)) for split in ("train", "valid", "test")))
    known = (*MADE, *PARALLEL)

    def divide(pairs: list[Pair], what: str) -> Splits[Pair]:
        return divided(pairs, lambda pair: same_spelling(pair.source), what, data.split_seed)

    return opened(data, read_pairs.read, divide, known)


def public(data: DataSpec, split: str) -> Sides:
    """The two files of a public set of translations."""
    home, name = download.home(data.name), PARALLEL[data.name][split]
    languages, form = data.languages.split("-"), data.form or "raw"
    if form not in FORMS:
        raise unknown(f"data.form of {data.name}:", form, FORMS)
    if len(languages) != 2 or languages[0] == languages[1]:
        raise Refusal(f"data.languages={data.languages!r} names no two languages; write data.languages=en-de")
    paths = []
    for language in languages:
        plain = home / FORMS[form].format(split=name, language=language)
        path = next((path for path in (plain, plain.with_name(f"{plain.name}.gz")) if path.is_file()), None)
        if path is None:
            there = {file.name.removesuffix(".gz").split(".")[-1] for file in plain.parent.glob(f"{name}.*")}
            raise unknown(f"language of {data.name} ({form})", language, there)
        paths.append(str(path))
    return Sides(source=paths[0], target=paths[1])


def tokenizer(data: DataSpec, pairs: Sequence[Pair]) -> Tokenizer:
    """The tokenizer that the data ask for: trained on both sides of the pairs to learn from, or read from a file."""
    return tokenizer_of(data.tokenizer, (text for pair in pairs for text in (pair.source, pair.target)))
