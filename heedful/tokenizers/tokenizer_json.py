"""What a `tokenizer.json` says, and the engine made of it: one in which no text can become a control token."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from functools import cached_property
from typing import Any

import tokenizers

SPECIAL = ("<pad>", "<begin>", "<end>", "<unknown>")  # ids 0 to 3, as the models take them
BLANK = "▁"  # what SentencePiece writes for a blank
SYMBOLS = "user-defined symbols"  # what a template names them by, all at once
EACH = "(?m:.)"  # any character, the end of a line among them


class Layout:
    """The parts of a `tokenizer.json` as they are written in it."""

    def __init__(self, engine: tokenizers.Tokenizer, text: str | None = None) -> None:
        self.parts: dict[str, Any] = json.loads(engine.to_str())
        self.text = text or engine.to_str(pretty=True)  # as it was read, since the engine rounds scores anew each time

    @property
    def model(self) -> dict[str, Any]:
        """How pieces are found: its type, its vocabulary, its merges."""
        return self.parts["model"]

    @cached_property
    def known(self) -> dict[str, int]:
        """The id of each token, by its name in the file."""
        vocab = self.model["vocab"]
        known = {piece: at for at, (piece, _) in enumerate(vocab)} if isinstance(vocab, list) else dict(vocab)
        return known | {token["content"]: token["id"] for token in self.parts["added_tokens"]}

    @cached_property
    def kind(self) -> str:
        """Which of the kinds it is; a foreign one is what comes nearest."""
        kind = self.model["type"]
        if kind == "BPE":
            parts = [self.parts[part] for part in ("normalizer", "pre_tokenizer", "decoder")]
            return "bpe" if '"ByteLevel"' in json.dumps(parts) else "bpe_characters"
        if kind == "WordLevel":
            return "characters" if pattern(self.parts["pre_tokenizer"]) == EACH else "words"
        return str(kind).lower()

    @cached_property
    def control(self) -> dict[str, int]:
        """The tokens that only a program sets: the four of ours, or those that a template names and never uses."""
        if all(self.known.get(name) == at for at, name in enumerate(SPECIAL)):
            return {name: at for at, name in enumerate(SPECIAL)}
        named, used = self.template
        return {name: token["ids"][0] for name, token in named.items() if name not in used and name != SYMBOLS}

    @property
    def symbols(self) -> list[str]:
        """The user-defined symbols of a SentencePiece model, which its normalisation leaves alone."""
        return self.template[0].get(SYMBOLS, {}).get("tokens", []) if self.steps else []

    @cached_property
    def template(self) -> tuple[dict[str, Any], set[str]]:
        """The tokens that a template names, and which of them it puts before or behind a text."""
        template = self.parts["post_processor"] or {}
        if template.get("type") != "TemplateProcessing":
            return {}, set()
        used = {part["SpecialToken"]["id"] for part in template["single"] if "SpecialToken" in part}
        return template["special_tokens"], used

    @cached_property
    def special(self) -> dict[str, int]:
        """All tokens that are no text: control tokens, and those that stand for themselves in a text."""
        return self.control | {
            token["content"]: token["id"] for token in self.parts["added_tokens"] if token["special"]
        }

    @property
    def unknown(self) -> int | None:
        """The token of what is not known, where there is one."""
        name = self.model.get("unk_token")
        return self.model.get("unk_id") if name is None else self.known.get(name)

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """What SentencePiece does to a text first, where this was made from a model of it, in terms of the engine."""
        steps = (self.parts["normalizer"] or {}).get("normalizers") or [{}]
        return steps if self.control and steps[-1].get("content") == BLANK else []

    def engine(self) -> tokenizers.Tokenizer:
        """The engine; control tokens bear names in it that no text can spell, since a word never ends in a blank."""
        parts = copy.copy(self.parts)
        parts["truncation"] = parts["padding"] = None  # nothing is cut off or added where nobody asked for it
        parts["model"] = self.model | ({"dropout": None} if self.model["type"] == "BPE" else {})
        if self.control:
            parts["model"] = rename_tokens(parts["model"], {name: f"{name} " for name in self.control})
            parts["added_tokens"] = [token for token in parts["added_tokens"] if token["content"] not in self.control]
            named, used = self.template
            kept = {name: token for name, token in named.items() if name in used and name not in self.control}
            parts["post_processor"] = parts["post_processor"] | {"special_tokens": kept} if kept else None
        if self.steps:
            parts["normalizer"] = None
            parts["model"], parts["added_tokens"] = self.apart(parts["model"], parts["added_tokens"])
        return tokenizers.Tokenizer.from_str(json.dumps(parts, ensure_ascii=False))

    def apart(self, model: dict[str, Any], added: list[Any]) -> tuple[dict[str, Any], list[Any]]:
        """A model that never merges symbols, and added tokens, these among them: the engine looks for those first."""
        if model["type"] != "BPE" or not self.symbols:
            return model, added
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        own = [{"id": self.known[text], "content": text, **flags} for text in self.symbols]
        return model | {"ignore_merges": False}, [*added, *own]

    def ready(self) -> Callable[[list[str]], list[str]] | None:
        """What is done to texts before the engine sees them: by SentencePiece itself, where its model said what.

        The engine could do it too, and nearly does: it maps characters a whole grapheme at a time, and so of several
        accents loses some.
        """
        if not self.steps:
            return None
        from heedful.tokenizers.sentencepiece.charsmap import normaliser

        kinds = [step["type"] for step in self.steps]
        charsmap = base64.b64decode(self.steps[0].get("precompiled_charsmap", ""))
        return normaliser(charsmap, "Prepend" in kinds, kinds.count("Replace") > 1, self.symbols)


def pattern(part: Any) -> str | None:
    """The regular expression by which a part splits, where it does."""
    found = (part or {}).get("pattern") or {}
    return found.get("Regex") if isinstance(found, dict) else None


def rename_tokens(model: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """A model, some of whose tokens bear another name."""
    vocab = model["vocab"]
    if isinstance(vocab, list):
        return model | {"vocab": [[names.get(piece, piece), score] for piece, score in vocab]}
    unknown = str(model.get("unk_token"))
    return model | {
        "vocab": {names.get(token, token): at for token, at in vocab.items()},
        "unk_token": names.get(unknown, model.get("unk_token")),
    }
