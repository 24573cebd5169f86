"""How long a tokenizer's parts can make a text: counted before any text is given to them."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import tokenizers

from heedful.errors import Refusal

PARTS = 100  # of all kinds together
GROWTH, DECODED = 128, 16  # how many times as many bytes a text can have once it is made ready, or decoded
PUT, LARGEST_TEXT = 256, 1 << 23  # bytes that may be put before a text, and that one may become, of which
# each can be a token of its own, and take the engine 300 bytes of memory
ADDED = 32  # tokens around a text
NAMED = 32  # bytes that a model puts to every piece of a text: a prefix, a suffix, the name of what is not known
NAME = 1 << 12  # characters of a token, and of all else that is no pattern
PATTERNS = 1 << 17  # characters of all regular expressions together: a class of characters takes 2 kB
AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix")
INNER = ("normalizers", "pretokenizers", "processors", "decoders")
NULLABLE = re.compile(r"[?*^$]|\{,|\{0|\(\)|\(\||\|\)|\|\||\A\||\|\Z|\A\Z|\\[bBAzZGKyYXkg\d]")


@dataclass(frozen=True)
class Bound:
    """At most this many times as many bytes as a text and its end have, and so many more."""

    times: int = 1
    plus: int = 0

    def then(self, part: dict[str, Any]) -> Bound:
        """The bound once another part has been at the text."""
        times = TIMES[part["type"]](part)
        return Bound(self.times * times, (self.plus + len(part.get("prepend", "").encode())) * times)

    def spelt(self, model: Any) -> Bound:
        """The bound once a model has made tokens: BPE may spell a character, and what it puts to it, byte by byte."""
        if not isinstance(model, tokenizers.models.BPE) or not model.byte_fallback:
            return self
        times = 1 + sum(len(name.encode()) for name in affixes(model))
        return Bound(self.times * times, self.plus * times)

    def size(self, text: str) -> int:
        """How many bytes a text can become."""
        return self.times * (len(text.encode("utf-8", "surrogatepass")) + 1) + self.plus

    @property
    def room(self) -> int:
        """How many characters a text can have, whatever they are."""
        return (LARGEST_TEXT - self.plus) // self.times // 4 - 1

    def check(self, texts: Sequence[str]) -> None:
        """Refuses texts that could become longer than memory is."""
        for text in texts:
            if len(text) > self.room and (size := self.size(text)) > LARGEST_TEXT:
                raise Refusal(
                    f"a text of {len(text)} characters can become {size} bytes in this tokenizer, which are more than "
                    f"{LARGEST_TEXT}; cut it into parts"
                )


def bound_of(*parts: Any) -> Bound:
    """The bound of parts that a text goes through; a ValueError where one of them is not known."""
    made = Bound()
    for part in (one for many in parts for one in flat(many)):
        if part["type"] not in TIMES:
            raise ValueError(f"no bound is known for how long its {part['type']} makes a text")
        made = made.then(part)
    return made


def check(engine: tokenizers.Tokenizer) -> None:
    """Refuses an engine whose parts are too many, or make too much of a text."""
    if max(map(len, engine.get_vocab()), default=0) > NAME:
        raise ValueError(f"a word in it has more than {NAME} characters")
    if max((len(name.encode()) for name in (*affixes(engine.model), unknown_token(engine.model))), default=0) > NAMED:
        raise ValueError(f"its model puts more than {NAMED} bytes to every piece of a text")
    before = [state_of(part) for part in (engine.normalizer, engine.pre_tokenizer)]
    around, decoder = state_of(engine.post_processor), state_of(engine.decoder)
    if sum(1 for part in (*before, around, decoder) for _ in flat(part)) > PARTS:
        raise ValueError(f"it has more than {PARTS} parts")
    text, told = bound_of(*before), bound_of(decoder)
    for name, made, most in (
        ("normalizer or pre_tokenizer", text, GROWTH),
        ("model", text.spelt(engine.model), GROWTH),
        ("decoder", told, DECODED),
    ):
        if made.times > most:
            raise ValueError(f"its {name} makes texts more than {most} times as long")
        if made.plus > PUT:
            raise ValueError(f"its {name} puts more than {PUT} bytes before a text")
    for at in (at for part in flat(around) for at in put(part)):
        if engine.id_to_token(at) is None:
            raise ValueError(f"its post_processor puts the id {at}, which no token has")
    for part in flat(around):
        for side in ("single", "pair") if part["type"] == "TemplateProcessing" else ():
            check_template(part[side], part["special_tokens"])
    if max(engine.num_special_tokens_to_add(pair) for pair in (False, True)) > ADDED:
        raise ValueError(f"its post_processor puts more than {ADDED} tokens around a text")


def affixes(model: Any) -> list[str]:
    """What a model puts before and behind parts of a word before it looks for them."""
    names = {tokenizers.models.BPE: AFFIXES, tokenizers.models.WordPiece: AFFIXES[:1]}.get(type(model), ())
    return [getattr(model, name) or "" for name in names]


def unknown_token(model: Any) -> str:
    """What a model writes for what it does not know: Unigram that itself, all others a name."""
    return "" if isinstance(model, tokenizers.models.Unigram) else model.unk_token or ""


def put(part: dict[str, Any]) -> list[int]:
    """The ids of the tokens that a part puts around a text, or could."""
    if "special_tokens" in part:
        return [at for token in part["special_tokens"].values() for at in token["ids"]]
    return [part[side][1] for side in ("sep", "cls") if side in part]


def check_template(pieces: list[dict[str, Any]], special: dict[str, Any]) -> None:
    """Refuses a template that repeats a text or its tokens."""
    texts = [piece["Sequence"]["id"] for piece in pieces if "Sequence" in piece]
    named = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
    if len(set(texts)) < len(texts):
        raise ValueError("its post_processor repeats a text")
    if sum(len(special[name]["ids"]) for name in named) > ADDED:
        raise ValueError(f"its post_processor puts more than {ADDED} tokens around a text")


def state_of(part: Any) -> Any:
    """What a part of an engine is, as a `tokenizer.json` would say it."""
    return None if part is None else json.loads(part.__getstate__())


def flat(part: Any) -> Iterator[dict[str, Any]]:
    """The parts that a part is a sequence of, or the part itself."""
    if part is not None and part["type"] == "Sequence":
        for one in next(part[key] for key in INNER if key in part):
            yield from flat(one)
    elif part is not None:
        yield part


def bound_of_replacement(part: dict[str, Any]) -> int:
    """What a replacement makes of a byte; a pattern that matches nothing at all may match beside each."""
    content = part["content"]
    size = max(len(text.encode()) for text in (content, unicodedata.normalize("NFKD", content).lower()))
    [(kind, pattern)] = part["pattern"].items()
    if NULLABLE.search(pattern.replace("[^", "[")) if kind == "Regex" else not pattern:
        return 1 + size
    return max(1, size if kind == "Regex" else ceil(size / len(pattern.encode())))


def bound_of_map(part: dict[str, Any]) -> int:
    """What a map of characters makes of a byte."""
    from heedful.tokenizers.sentencepiece.charsmap import ratio

    return max(1, ceil(ratio(base64.b64decode(part["precompiled_charsmap"] or ""))))


def byte_level(part: dict[str, Any]) -> int:
    """Bytes become letters of one or two bytes; a blank may be put before each word."""
    return 4 if part.get("add_prefix_space") else 2


def bound_of_mark(part: dict[str, Any]) -> int:
    """A blank becomes a sign, and one may be put before each word."""
    return 1 + len(part["replacement"].encode())


AS_LONG = (
    "Digits Whitespace WhitespaceSplit BertPreTokenizer Punctuation UnicodeScripts Delimiter CharDelimiterSplit Split "
    "FixedLength NFC NFD NFKC NFKD Lowercase Nmt Strip StripAccents Prepend ByteFallback Fuse"
)  # what a form of Unicode makes longer is the user's own text: what is put there is counted at its longest
TIMES: dict[str, Callable[[dict[str, Any]], int]] = {
    **dict.fromkeys(AS_LONG.split(), lambda part: 1),
    "Replace": bound_of_replacement,
    "Precompiled": bound_of_map,
    "BertNormalizer": lambda part: 2,  # blanks around Chinese characters
    "ByteLevel": byte_level,
    "Metaspace": bound_of_mark,
    "WordPiece": lambda part: 2,  # a blank before a token
    "BPEDecoder": lambda part: 1 if part["suffix"] else 3,
    "CTC": lambda part: 1 if part["word_delimiter_token"] else 3,
}
