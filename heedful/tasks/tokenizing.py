"""The tokenizer of a model that goes on learning: its own, or one of any make, or one that is trained on the texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heedful.errors import Refusal
from heedful.formats import native
from heedful.models import part_words
from heedful.tokenizers import SPECIAL, Tokenizer, hf_folders, train


def tokenizer(data: Any, texts: Iterable[str], special: tuple[str, ...] = ()) -> Tokenizer:
    """The tokenizer that the data name: the folder of a model, a file, or a kind that is trained on texts."""
    named = data.tokenizer
    if named.endswith((".json", ".model")):
        try:
            return Tokenizer.read(Path(named))
        except Refusal as refused:
            raise Refusal(f"data.tokenizer: {refused}; train one with `heedful tokenizer train`") from None
    if "/" in named or Path(named).is_dir():
        place = native.model_folder(named)
        native.check_sums(place, native.TOKENIZER)
        return hf_folders.needed(place)
    return tokenizer_of(data, texts, special)


def tokenizer_of(data: Any, texts: Iterable[str], special: tuple[str, ...] = ()) -> Tokenizer:
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
