"""Where one word looks, layer by layer: what "it" means in a sentence, and in another that ends otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from heedful.errors import Refusal
from heedful.looking.maps import Map

MEMBER = re.compile(r"^members\.(\d+)\.")


def gaze(maps: Sequence[Map], word: str, name: str, layer: str | None = None) -> Map:
    """What a word looks at, as a map: a row for each layer, the mean of its heads; or for each head of one layer.

    Layers are those in which the word itself looks, at the same words. Of a word that stands there twice it is the
    last; of one in parts, the mean of them.
    """
    there = [(map, rows) for map in maps if (rows := places(map.rows, word))]
    if not there:
        known = " ".join(dict.fromkeys(piece.strip() for map in maps[:1] for piece in map.rows))
        raise Refusal(f"--word {word} is not one of the words that look: {known[:200]}; give one of them")
    if layer is not None:
        there = [one for one in there if one[0].path == layer]
    if not there:
        raise Refusal(f"--word {word} does not look in {layer}; leave --layer out")
    there = [one for one in there if one[0].columns == there[0][0].columns]
    seen = [map.weights[:, rows].mean(1) for map, rows in there]  # H S each
    if layer is None:
        weights, words = torch.stack([one.mean(0) for one in seen]), tuple(short(map.path) for map, _ in there)
    else:
        weights, words = seen[0], tuple(f"head {at}" for at in range(len(seen[0])))
    said = name.replace("\t", " | ")  # between a question and its text
    return Map(f"{word}: {said}", weights[None], words, there[0][0].columns)


def short(path: str) -> str:
    """A layer's path without what all have: `encoder.3` for encoder.blocks.3.attention, `1:encoder.3` of a member."""
    return MEMBER.sub(r"\1:", path.removesuffix(".attention").replace(".blocks.", "."))


def places(pieces: Sequence[str], word: str) -> list[int]:
    """The pieces that together are a word, where it stands last; none where it does not stand there."""
    plain = [piece.strip().removeprefix("##").casefold() for piece in pieces]
    for start in reversed(range(len(plain))):
        made = ""
        for end in range(start, len(plain)):
            made += plain[end]
            if made == word.casefold() and begins(pieces, start):
                return list(range(start, end + 1))
            if not made or not word.casefold().startswith(made):
                break
    return []


def begins(pieces: Sequence[str], at: int) -> bool:
    """Whether a word may begin at a piece: it goes on with none before it."""
    if pieces[at].startswith("##"):
        return at > 0 and pieces[at - 1].isspace()  # whose first letter is no piece with the blank before it
    return at == 0 or pieces[at][:1].isspace() or not (pieces[at - 1][-1:].isalpha() and tells_blanks(pieces))


def tells_blanks(pieces: Sequence[str]) -> bool:
    """Whether the pieces of words tell of the blanks before them."""
    return any(piece[:1].isspace() or piece[-1:].isspace() for piece in pieces)
