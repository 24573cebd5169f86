"""Parallel text: pairs made on the fly, public sets and a user's own files, and the tokenizer that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

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
from heedful.models import part_words
from heedful.tokenizers import SPECIAL, Tokenizer, train

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
    return tokenizer_of(data, (text for pair in pairs for text in (pair.source, pair.target)))


def tokenizer_of(data: DataSpec, texts: Iterable[str], special: tuple[str, ...] = ()) -> Tokenizer:
    """The tokenizer that the data ask for, with special tokens of a task: trained on texts, or read from a file."""
    if data.tokenizer.endswith((".json", ".model")):
        return fitting(data.tokenizer, special)
    kind, given = part_words.parse(data.tokenizer)
    if kind == "characters" and not given and not special:
        return Tokenizer.of_characters(texts)
    try:
        return train(texts, kind, special=special, **given)
    except Refusal as refused:
        raise Refusal(f"data.tokenizer={data.tokenizer}: {refused}") from None
    except (TypeError, AttributeError):
        known = "write, for instance, bpe(size=8000)"
        raise Refusal(f"data.tokenizer={data.tokenizer!r} cannot be made; {known}") from None


def fitting(path: str, special: tuple[str, ...] = ()) -> Tokenizer:
    """The tokenizer of a file, where its first tokens are the ones that the models here know."""
    try:
        made = Tokenizer.read(Path(path))
    except Refusal as refused:
        raise Refusal(f"data.tokenizer: {refused}; train one with `heedful tokenizer train`") from None
    if tuple(made.pieces(range(len(SPECIAL)))) != SPECIAL:
        raise Refusal(
            f"data.tokenizer={path} does not begin with {' '.join(SPECIAL)}; train one with `heedful tokenizer train`"
        )
    if lacking := [token for token in special if token not in made.special]:
        cure = f"train one with `heedful tokenizer train --special {lacking[0]}`"
        raise Refusal(f"data.tokenizer={path} has no {lacking[0]}; {cure}")
    return made
