"""How transformers is to write with an encoder-decoder: a `generation_config.json`."""

from __future__ import annotations

from typing import Any

from heedful.models.specs import Special


def generation(special: Special) -> dict[str, Any]:
    """What it says of special tokens."""
    said = {
        "pad_token_id": special.pad,
        "decoder_start_token_id": special.begin,
        "eos_token_id": special.end,
        "forced_bos_token_id": special.first,
        "bad_words_ids": [[token] for token in special.never] or None,
    }
    return {key: value for key, value in said.items() if value is not None}
