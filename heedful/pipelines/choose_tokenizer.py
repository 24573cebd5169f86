"""The tokenizer that data name: a model's own, that of a file, or one of a kind that is trained on their texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from heedful.errors import Refusal
from heedful.models import part_words
from heedful.tokenizers import SPECIAL, Tokenizer


def tokenizer_for(named: str, texts: Iterable[str], special: tuple[str, ...] = ()) -> Tokenizer:
    """The tokenizer of a model that goes on learning, by the word of `data.tokenizer`: one of any make will do."""
    if named.endswith((".json", ".model")):
        return of_file(named)
    if "/" in named or Path(named).is_dir():
        from heedful.formats import TOKENIZER, native
        from heedful.tokenizers import hf_folders

        place = native.model_folder(named)
        native.check_sums(place, TOKENIZER)
        return hf_folders.read_needed(place)
    return tokenizer_of(named, texts, special)


def tokenizer_of(named: str, texts: Iterable[str], special: tuple[str, ...] = ()) -> Tokenizer:
    """The tokenizer of a model that begins anew, with special tokens of a task: trained on texts, or that of a file."""
    if named.endswith((".json", ".model")):
        return fitting(named, special)
    kind, given = part_words.parse(named)
    if kind == "characters" and not given and not special:
        return Tokenizer.of_characters(texts)
    from heedful.tokenizers import train

    try:
        return train(texts, kind, special=special, **given)
    except Refusal as refused:
        raise Refusal(f"data.tokenizer={named}: {refused}") from None
    except (TypeError, AttributeError):
        raise Refusal(f"data.tokenizer={named!r} cannot be made; write, for instance, bpe(size=8000)") from None


def of_file(path: str) -> Tokenizer:
    """The tokenizer of a file."""
    try:
        return Tokenizer.read(Path(path))
    except Refusal as refused:
        raise Refusal(f"data.tokenizer: {refused}; train one with `heedful tokenizer train`") from None


def fitting(path: str, special: tuple[str, ...] = ()) -> Tokenizer:
    """The tokenizer of a file, where its first tokens are the ones that the models here know."""
    made = of_file(path)
    if tuple(made.pieces(range(len(SPECIAL)))) != SPECIAL:
        raise Refusal(
            f"data.tokenizer={path} does not begin with {' '.join(SPECIAL)}; train one with `heedful tokenizer train`"
        )
    if lacking := [token for token in special if token not in made.special]:
        cure = f"train one with `heedful tokenizer train --special {lacking[0]}`"
        raise Refusal(f"data.tokenizer={path} has no {lacking[0]}; {cure}")
    return made
