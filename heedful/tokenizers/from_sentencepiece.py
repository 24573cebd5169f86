"""SentencePiece models (Kudo and Richardson, 2018) on the Rust engine: the same pieces, scores, merges and blanks."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from heedful.tokenizers.length_bounds import PATTERNS
from heedful.tokenizers.sentencepiece.charsmap import sound
from heedful.tokenizers.sentencepiece.proto import Kind, Model, Piece, Type, short
from heedful.tokenizers.tokenizer_json import BLANK, SYMBOLS

LONGEST = 1000  # characters of a piece; SentencePiece's own are 16 long at most where nobody says otherwise


def convert(model: Model) -> tokenizers.Tokenizer:
    """An engine that gives the ids that SentencePiece gives; a ValueError where there is none.

    Of two ways to split a text that hold the same pieces in another order, SentencePiece takes the one that its
    rounding in single precision favours; the engine rounds less, and may take the other.
    """
    fault = unfit(model)
    if fault:
        raise ValueError(fault)
    engine = tokenizers.Tokenizer(unigram(model) if model.kind == Kind.UNIGRAM else bpe(model))
    engine.normalizer = normalizers.Sequence(list(normal(model)))
    engine.pre_tokenizer = pre_tokenizers.Sequence(list(splits(model)))
    parts = [decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()]
    engine.decoder = decoders.Sequence([*parts, *([decoders.Strip(" ", 1, 0)] if model.prefix else [])])
    control = [piece.text for piece in model.pieces if piece.type in (Type.CONTROL, Type.UNKNOWN)]
    engine.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in control])
    engine.post_processor = template(model, control)
    return engine


def template(model: Model, control: list[str]) -> processors.PostProcessor:
    """A template that names tokens and uses none: so a `tokenizer.json` says which of them text never becomes.

    User-defined symbols have one name together, since text does become these.
    """
    at, own = ids(model), symbols(model)
    named = [{"id": text, "ids": [at[text]], "tokens": [text]} for text in control]
    named += [{"id": SYMBOLS, "ids": [at[text] for text in own], "tokens": own}] if own else []
    return processors.TemplateProcessing(single="$A", pair="$A $B", special_tokens=named)


def symbols(model: Model) -> list[str]:
    """The user-defined symbols, long ones first."""
    own = (piece.text for piece in model.pieces if piece.type == Type.USER_DEFINED)
    return sorted(own, key=len, reverse=True)


def unfit(model: Model) -> str:
    """The reason why a model cannot be converted; empty where it can."""
    texts = [piece.text for piece in model.pieces]
    unknown = sum(piece.type == Type.UNKNOWN for piece in model.pieces)
    if not texts:
        return "it has no pieces"
    if unknown != 1:
        return f"it has {unknown} unknown tokens and not one"
    if model.kind not in (Kind.UNIGRAM, Kind.BPE, Kind.CHAR):
        return "it is a model of whole words; only unigram, bpe and char models are read"
    if model.suffix or not model.escape:
        return "its blanks stand behind the words or are not marked, which is not read"
    if not all(texts) or len(set(texts)) < len(texts):
        return "a piece is empty or stands there twice"
    if max(map(len, texts)) > LONGEST or not all(math.isfinite(piece.score) for piece in model.pieces):
        return "a piece is far too long, or its score is no number"
    if model.byte_fallback and not {f"<0x{byte:02X}>" for byte in range(256)} <= set(texts):
        return "it falls back on bytes and has not all of them"
    if 2 * sum(map(len, symbols(model))) > PATTERNS:
        return "its user-defined symbols are far too long"
    if model.byte_fallback and model.kind == Kind.UNIGRAM and any("<0" in text for text in symbols(model)):
        return "it falls back on bytes, and a user-defined symbol of it holds the beginning of a byte's name, <0"
    if model.kind == Kind.UNIGRAM and overlapping(symbols(model)):
        return (
            "of its user-defined symbols one ends as another begins; SentencePiece's rounding would choose between them"
        )
    return ""


def overlapping(texts: list[str]) -> bool:
    """Whether a text ends as another one begins: then several ways to split what both are in can score the same."""
    found = sorted(texts)
    for text in texts:
        for end in (text[start:] for start in range(1, len(text))):
            at = bisect_left(found, end)
            if any(other.startswith(end) and other not in (end, text) for other in found[at : at + 3]):
                return True
    return False


def ids(model: Model) -> dict[str, int]:
    """The id of each piece: its place."""
    return {piece.text: at for at, piece in enumerate(model.pieces)}


def unknown_of(model: Model) -> int:
    """The id of the unknown token."""
    return next(at for at, piece in enumerate(model.pieces) if piece.type == Type.UNKNOWN)


def unigram(model: Model) -> models.Unigram:
    """Pieces and their scores; what text must never become cannot be met in it."""

    def entry(piece: Piece) -> tuple[str, float]:
        if piece.type == Type.UNUSED:
            return f"{piece.text} ", 0.0
        if piece.type == Type.USER_DEFINED:
            return piece.text, (len(piece.text.encode()) - 1) / 10  # above all others, as SentencePiece has it
        return piece.text, short(piece.score) if piece.type == Type.NORMAL else 0.0

    return models.Unigram([entry(piece) for piece in model.pieces], unknown_of(model), model.byte_fallback)


def bpe(model: Model) -> models.BPE:
    """Pieces and the merges that their scores imply: two pieces may merge where both together are one."""
    known, found = ids(model), []
    free = {piece.text for piece in model.pieces if piece.type == Type.NORMAL}
    for at, piece in enumerate(model.pieces if model.kind == Kind.BPE else ()):
        if piece.type == Type.NORMAL:
            halves = ((piece.text[:cut], piece.text[cut:]) for cut in range(1, len(piece.text)))
            found += [(-piece.score, at, left, right) for left, right in halves if left in free and right in free]
    return models.BPE(
        known,
        [(left, right) for _, _, left, right in sorted(found)],
        unk_token=model.pieces[unknown_of(model)].text,
        fuse_unk=True,
        byte_fallback=model.byte_fallback,
        ignore_merges=bool(symbols(model)),
    )


def normal(model: Model) -> Iterable[normalizers.Normalizer]:
    """How text is made ready: characters by the model's own map, then its blanks."""
    if model.charsmap:
        yield normalizers.Precompiled(sound(model.charsmap))
    if model.single_blanks:
        yield normalizers.Replace(Regex(r"\A +| +\z"), "")
        yield normalizers.Replace(Regex(" {2,}"), " ")
    if model.prefix:
        yield normalizers.Prepend(" ")
    yield normalizers.Replace(" ", BLANK)


def splits(model: Model) -> Iterable[pre_tokenizers.PreTokenizer]:
    """Where text can be cut without changing what the model makes of it: words are then looked up, not split again."""
    own = symbols(model)
    if own and model.kind != Kind.UNIGRAM:
        yield pre_tokenizers.Split(Regex("|".join(map(re.escape, own))), "isolated")
    if model.byte_fallback and model.kind == Kind.UNIGRAM:  # so that a byte's name in a text is not that byte
        yield pre_tokenizers.Split(Regex("<(?=0x[0-9A-F]{2}>)"), "merged_with_previous")
    if not any(BLANK in piece.text[1:] for piece in model.pieces if piece.type in (Type.NORMAL, Type.USER_DEFINED)):
        yield pre_tokenizers.Split(BLANK, "merged_with_next")
