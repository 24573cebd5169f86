"""A `config.json` of somebody else's, read key by key: what could matter is read, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from heedful.errors import Refusal

T = TypeVar("T")
NEEDED: Any = object()  # the default of a key that has none
# What every config.json may say and no model computes with.
HARMLESS = frozenset(
    {
        "architectures",
        "bad_words_ids",
        "begin_suppress_tokens",
        "decoder_start_token_id",
        "diversity_penalty",
        "do_sample",
        "dtype",
        "early_stopping",
        "encoder_no_repeat_ngram_size",
        "exponential_decay_length_penalty",
        "finetuning_task",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "gradient_checkpointing",
        "id2label",
        "initializer_range",
        "keys_to_ignore_at_inference",
        "label2id",
        "length_penalty",
        "max_length",
        "min_length",
        "model_type",
        "no_repeat_ngram_size",
        "num_beam_groups",
        "num_beams",
        "num_labels",
        "num_return_sequences",
        "output_attentions",
        "output_hidden_states",
        "output_past",
        "output_scores",
        "prefix",
        "pretraining_tp",
        "problem_type",
        "remove_invalid_values",
        "repetition_penalty",
        "return_dict",
        "return_dict_in_generate",
        "sep_token_id",
        "suppress_tokens",
        "task_specific_params",
        "temperature",
        "tf_legacy_loss",
        "tokenizer_class",
        "top_k",
        "top_p",
        "torch_dtype",
        "torchscript",
        "transformers.js_config",
        "transformers_version",
        "typical_p",
        "use_bfloat16",
        "use_cache",
    }
)

OFF = {  # and what does nothing as long as it says this
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "pruned_heads": {},
    "tie_encoder_decoder": False,
}


class Config:
    """The keys of a config.json, and which of them have been read."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = values, where
        self.read: set[str] = set()

    def take(self, key: str, default: Any = NEEDED) -> Any:
        """The value of a key, whatever it is."""
        self.read.add(key)
        value = self.values.get(key, default)
        if value is NEEDED:
            raise Refusal(f"{self.where}: {key} is missing; copy the folder again")
        return value

    def whole(self, key: str, default: Any = NEEDED) -> int:
        """A whole number."""
        return self._fitting(key, default, int, "a whole number")

    def count(self, key: str, default: int | None = None) -> int | None:
        """A whole number, or none where it is null."""
        return None if self.take(key, default) is None else self.whole(key, default)

    def number(self, key: str, default: Any = NEEDED) -> float:
        """A number."""
        value = self.take(key, default)
        if type(value) not in (int, float):
            raise self.refusal(key, "it should be a number")
        return float(value)

    def positive(self, key: str, default: Any = NEEDED) -> float:
        """A number above 0."""
        value = self.number(key, default)
        if not 0 < value < float("inf"):
            raise self.refusal(key, "it should be a number above 0")
        return value

    def flag(self, key: str, default: Any = NEEDED) -> bool:
        """True or false."""
        return self._fitting(key, default, bool, "true or false")

    def word(self, key: str, default: Any = NEEDED) -> str:
        """A text."""
        return self._fitting(key, default, str, "a text")

    def _fitting(self, key: str, default: Any, kind: type[T], told: str) -> T:
        value = self.take(key, default)
        if type(value) is not kind:
            raise self.refusal(key, f"it should be {told}")
        return value

    def among(self, key: str, known: Mapping[str, T], default: Any = NEEDED) -> T:
        """What a table has for the word of a key."""
        word = self.word(key, default)
        if word not in known:
            raise self.refusal(key, f"known: {', '.join(known)}")
        return known[word]

    def only(self, key: str, *allowed: Any) -> None:
        """Refuses another value than these; the first is what the key means where it is not there."""
        value = self.take(key, allowed[0])
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise self.refusal(key, f"only {' or '.join(map(str, allowed))} is supported")

    def id(self, key: str, default: int | None = None) -> int | None:
        """The id of a special token, or none."""
        value = self.ids(key, default)
        if isinstance(value, list):
            raise self.refusal(key, "it should be one id")
        return value

    def ids(self, key: str, default: int | None = None) -> int | list[int] | None:
        """The id of a special token, or of several, or none."""
        value = self.take(key, default)
        many = value if isinstance(value, list) else [] if value is None else [value]
        if not all(type(one) is int for one in many):
            raise self.refusal(key, "it should be an id")
        return value if not many or min(many) >= 0 else None  # -1 is said for none

    def classes(self) -> list[str]:
        """The names of the classes that the model was saved as, the first being what it is; the key is not yet read."""
        value = self.values.get("architectures")
        if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            raise self.refusal("architectures", "it should be a list of names")
        return value or []

    def refusal(self, key: str, why: str) -> Refusal:
        """What is said of a value that does not fit."""
        return Refusal(f"{self.where}: {key} is {str(self.values.get(key))[:60]!r}; {why}")

    def harmless(self, *keys: str) -> None:
        """Says of keys that nothing is computed with them."""
        self.read.update(keys)

    def finish(self) -> None:
        """Refuses keys that nobody has read: they could change what the model computes."""
        for key, value in self.values.items():
            known = key in self.read or key in HARMLESS or key.startswith("_")
            if not known and value is not None and (key not in OFF or OFF[key] != value):
                raise Refusal(
                    f"{self.where}: {key[:60]} is {str(value)[:60]!r}, which is not supported and could change what "
                    "the model computes; take the key out if it does not"
                )
