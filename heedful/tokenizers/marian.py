"""Marian's tokenizer: two SentencePiece models, one a language, over one vocabulary (`vocab.json`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import tokenizers

from heedful.errors import Refusal
from heedful.safe.opening import inside
from heedful.safe.plain_data import json_of
from heedful.tokenizers import read_tokenizer
from heedful.tokenizers.from_sentencepiece import convert
from heedful.tokenizers.sentencepiece.proto import Piece, Type, parse
from heedful.tokenizers.tokenizer import Tokenizer

SOURCE, TARGET, VOCAB = "source.spm", "target.spm", "vocab.json"
UNKNOWN, CONTROL = "<unk>", ("</s>", "<s>", "<pad>")
GOAL = re.compile(r"(?s:>>.*?<<)")  # the language to translate to, where a model knows several: >>fra<< Hello
NEVER = -1e4  # the score of what a side does not split its texts into


class Sides(Tokenizer):
    """Reads texts as the source's model splits them and writes as the target's does; ids are the vocabulary's."""

    theirs = "MarianTokenizer"
    source: Tokenizer
    files: Mapping[str, bytes]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The tokenizer of a folder with `source.spm`, `target.spm` and `vocab.json`."""
        folder = Path(path)
        vocab = vocabulary(inside(folder / VOCAB))
        source, target = (inside(folder / name) for name in (SOURCE, TARGET))
        made = read_tokenizer.make_tokenizer(target, lambda: order_pieces(target, vocab, Type.NORMAL), cls)
        made.files = {path.name: read_tokenizer.content(path) for path in (source, target, folder / VOCAB)}
        made.source = read_tokenizer.make_tokenizer(source, lambda: order_pieces(source, vocab, Type.UNUSED), Tokenizer)
        return made

    def write(self, path: str | Path) -> None:
        """Writes the three files as they were read, in the folder of the `tokenizer.json` that another would write."""
        for name, data in self.files.items():
            Path(path).with_name(name).write_bytes(data)

    def encode_all(self, texts: Sequence[str], longest: int | None = None) -> list[list[int]]:
        known, unknown = self.layout.known, self.layout.known[UNKNOWN]
        goals = [GOAL.match(text) for text in texts]
        first = [[known.get(goal[0], unknown)] if goal else [] for goal in goals]
        rest = [text[goal.end() :] if goal else text for text, goal in zip(texts, goals, strict=True)]
        made = zip(first, rest, self.source.encode_all(rest), strict=True)
        return [[*one, *(ids if self.knows(ids) else self.looked_up(text))][:longest] for one, text, ids in made]

    def knows(self, ids: Sequence[int]) -> bool:
        """Whether the source's model and the vocabulary know all pieces of a text."""
        return self.layout.known[UNKNOWN] not in ids and max(ids, default=0) < len(self)

    def looked_up(self, text: str) -> list[int]:
        """The ids of a text; what the source's model does not know is looked up as it stands, as Marian does."""
        known, unknown = self.layout.known, self.layout.known[UNKNOWN]
        return [at if self.knows([at]) else known.get(piece, unknown) for piece, at in self.source.cut(text)]


def vocabulary(path: Path) -> Mapping[str, int]:
    """The tokens of a `vocab.json`, by id from 0 on, without a gap."""
    try:
        known = json_of(read_tokenizer.content(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path} is no vocabulary: {read_tokenizer.error_line(error)}") from None
    ids = list(known.values()) if isinstance(known, dict) else []
    if not ids or any(type(at) is not int for at in ids) or sorted(ids) != list(range(len(ids))):
        raise Refusal(f"{path} is no vocabulary: its ids do not count from 0 on")
    return known


def order_pieces(path: Path, vocab: Mapping[str, int], others: Type) -> tuple[tokenizers.Tokenizer, None]:
    """The engine of a model, its pieces those of the vocabulary, in its order; what it has not itself is of a type.

    Behind them stand those that only the source's model has: it splits by them, and they become the unknown token.
    """
    model = parse(read_tokenizer.content(path))
    own = {piece.text: piece for piece in model.pieces}
    pieces = []
    for text in sorted(vocab, key=vocab.__getitem__):
        given = Type.CONTROL if text in CONTROL else others
        pieces.append(own.get(text, Piece(text, NEVER, given)))
    if others == Type.UNUSED:
        no_text = (Type.CONTROL, Type.UNKNOWN)
        pieces += [piece for piece in model.pieces if piece.text not in vocab and piece.type not in no_text]
    return convert(replace(model, pieces=pieces)), None
