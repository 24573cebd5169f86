"""The tokenizer of a model that goes on learning: its own, or one of any make, or one that is trained on the texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from heedful.data.data_spec import DataSpec
from heedful.errors import Refusal
from heedful.formats import native
from heedful.tasks.parallel import tokenizer_of
from heedful.tokenizers import Tokenizer, hf_folders


def tokenizer(data: DataSpec, texts: Iterable[str], special: tuple[str, ...] = ()) -> Tokenizer:
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
