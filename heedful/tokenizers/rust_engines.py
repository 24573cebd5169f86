"""An engine of each kind: how it cuts a text into words, how it finds pieces in these, and how they become text again.

All kinds but `characters` see a text with one blank put before it, so that its first word is the word it is elsewhere;
a word carries the blank before it, and decoding joins pieces and drops that one blank. So nothing is lost but what is
unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from heedful.errors import Refusal
from heedful.tokenizers.pieces import BYTES
from heedful.tokenizers.tokenizer_json import EACH, SPECIAL

WAYS = ("joined", "apart", "single")
CONTINUED = "##"  # what a piece of WordPiece bears that does not begin its word
LETTER, DIGIT, LONGEST = r"\p{L}\p{M}", r"\p{N}", 100
BYTE_NAMES = [f"<0x{byte:02X}>" for byte in range(256)]
BYTE_LETTERS = sorted(BYTES, key=lambda letter: BYTES[letter])
UNKNOWN = SPECIAL[3]


def words_pattern(digits: str, punctuation: str, alone: str = "") -> str:
    """What a word is: a run of letters with the blank before it; so are digits and signs, unless they are joined.

    Single digits stand without the blank, so that each is the same wherever it stands. `alone` is always single.
    """
    among = LETTER + (DIGIT if digits == "joined" else "")
    signs = rf"[^\s{LETTER}{DIGIT}{alone}]"
    word = rf"[^\s{'' if digits == 'joined' else DIGIT}{alone}]" if punctuation == "joined" else f"[{among}]"
    most = f"{{1,{LONGEST}}}"
    found = [f" ?{word}{most}"]
    found += {"joined": [], "apart": [f" ?[{DIGIT}]{most}"], "single": [f"[{DIGIT}]"]}[digits]
    found += {"joined": [], "apart": [f" ?{signs}{most}"], "single": [f" ?{signs}"]}[punctuation]
    found += [f" ?{alone}"] if alone else []
    return "|".join([*found, rf"\s{most}(?!\S)", rf"\s{most}"])


def splitter(kind: str, digits: str, punctuation: str) -> pre_tokenizers.PreTokenizer:
    """What cuts a text into the words of a kind."""
    if kind == "characters":
        return pre_tokenizers.Split(Regex(EACH), "isolated")
    alone = "#" if kind == "wordpiece" else ""  # or a word could look as if it went on another
    return pre_tokenizers.Split(Regex(words_pattern(digits, punctuation, alone)), "isolated")


def number_tokens(*tokens: Sequence[str]) -> dict[str, int]:
    """Tokens with their ids: the four that every tokenizer here has, then these in order."""
    return {token: at for at, token in enumerate(chain(SPECIAL, *tokens))}


def characters(known: Sequence[str], special: Sequence[str] = (), lower: bool = False) -> tokenizers.Tokenizer:
    """Each character a token."""
    engine = tokenizers.Tokenizer(models.WordLevel(number_tokens(special, known), UNKNOWN))
    if lower:
        engine.normalizer = normalizers.Lowercase()
    engine.pre_tokenizer = splitter("characters", "", "")
    engine.decoder = decoders.Fuse()
    return with_special(engine, special, alone=False)


def of_words(
    kind: str, model: models.Model, split: pre_tokenizers.PreTokenizer, special: Sequence[str], lower: bool = False
) -> tokenizers.Tokenizer:
    """An engine whose model finds the pieces of words."""
    engine, before = tokenizers.Tokenizer(model), normalizers.Prepend(" ")
    engine.normalizer = normalizers.Sequence([normalizers.Lowercase(), before]) if lower else before
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    engine.pre_tokenizer = pre_tokenizers.Sequence([split, bytewise]) if kind == "bpe" else split
    engine.decoder = decoders.Sequence([*joining(kind), decoders.Strip(" ", 1, 0)])
    return with_special(engine, special)


def joining(kind: str) -> list[decoders.Decoder]:
    """How the pieces of a kind become one text."""
    if kind == "bpe":
        return [decoders.ByteLevel()]
    if kind == "bpe_characters":
        return [decoders.ByteFallback(), decoders.Fuse()]
    if kind == "wordpiece":
        return [decoders.Replace(Regex(rf"\A{CONTINUED}"), ""), decoders.Fuse()]
    return [decoders.Fuse()]


def with_special(engine: tokenizers.Tokenizer, special: Sequence[str], alone: bool = True) -> tokenizers.Tokenizer:
    """An engine that knows which tokens are no text; the user's swallow the white space around them, if alone."""
    own = [AddedToken(token, special=True, normalized=False, lstrip=alone, rstrip=alone) for token in special]
    engine.add_special_tokens([*(AddedToken(token, special=True, normalized=False) for token in SPECIAL), *own])
    return engine


def is_panic(error: BaseException) -> bool:
    """Whether the engine gave up, as it does where others raise."""
    return type(error).__name__ == "PanicException"


@contextmanager
def refusing(texts: Sequence[str]) -> Iterator[None]:
    """Within it, what the engine does not take is refused."""
    try:
        yield
    except Exception as error:  # the engine raises plain Exceptions
        raise error if isinstance(error, Refusal) else unfit(texts, error) from None
    except BaseException as error:  # and panics at a pattern for which it would search without end
        raise unfit(texts, error) if is_panic(error) else error from None


def unfit(texts: Sequence[str], error: BaseException) -> Exception:
    """What to say of texts that the engine did not take."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            return Refusal(f"{text[:50]!r} holds half characters (surrogates), which are no text; drop or mend them")
    what = "encoded" if texts else "decoded"
    return Refusal(f"a text cannot be {what}: {error}; use another tokenizer")
