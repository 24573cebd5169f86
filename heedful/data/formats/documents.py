"""Plain texts: files and folders of them, and public sets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from heedful.data.near_duplicates import WHOLE, Cut, by_side, digests, held_together, side_of
from heedful.data.parallel_sample import Sides
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text, Whole, is_blank, text_of
from heedful.errors import Refusal
from heedful.tokenizers.chunks import by_lines

ENDINGS = (".txt", ".text", ".md", ".rst", ".tex", ".txt.gz")  # of files in a folder that are taken for texts
BY_FILE = 20  # files from which on a folder is divided by file
BLANK = re.compile(r"\s")
PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
LINE = re.compile(r"[^\n]*\S[^\n]*")
WORD = 50  # characters: words of fewer are not cut


# ---------------------------------------------------------------------- public


def shakespeare(home: Path) -> Splits[Text]:
    """Scenes of Shakespeare as nanoGPT divides them: the last tenth is both to choose by and to test on."""
    place = plain_file(home, "input.txt")
    whole = text_of(place)
    first = int(0.9 * len(whole))
    held = [Text(whole[first:], str(place))]
    return Splits([Text(whole[:first], str(place))], held, held)


def wikitext(home: Path) -> Splits[Text]:
    """WikiText's three files, a text each."""
    places = [plain_file(home, f"{split}.txt") for split in ("train", "valid", "test")]
    return Splits(*([Text(text_of(place), str(place))] for place in places))


def plain_file(home: Path, name: str) -> Path:
    """A file of a public set, which may lie there gzipped."""
    found = next((path for path in (home / name, home / f"{name}.gz") if path.is_file()), None)
    if found is None:
        raise Refusal(f"{home} has no {name}; fetch the set again with `heedful data get {home.name}`")
    return found


SETS: dict[str, Callable[[Path], Splits[Text]]] = {"tinyshakespeare": shakespeare, "wikitext-2": wikitext}


# ---------------------------------------------------------------------- a user's own


def read_texts(where: str | Sides) -> list[Text]:
    """The text of a file, or those of all text files in a folder and the folders in it, in the order of their names."""
    if isinstance(where, Sides):
        raise Refusal("data.train.source and data.train.target are pairs, and this task reads texts; give data.train")
    place = Path(where)
    if not place.is_dir():
        return [Text(text_of(place), where)]
    inside = sorted(path for path in place.rglob("*") if is_text(path))
    seen = [path for path in inside if not any(part.startswith(".") for part in path.relative_to(place).parts)]
    if not seen:
        raise Refusal(f"{place} holds no text files ({', '.join(ENDINGS)}); name another folder, or a file")
    return [Text(text_of(path), str(path)) for path in seen]


def is_text(path: Path) -> bool:
    """Whether a path is a file that ends as a text does, in capitals or not."""
    return path.name.lower().endswith(ENDINGS) and path.is_file()


def divide_texts(found: Sequence[Text], what: str, how: str, cut: Cut) -> Splits[Text]:
    """Texts to learn from, and a tenth each to choose by and to test on: whole files, or the ends of each."""
    if not by_file(found, how):
        return share_out(found, what, cut)
    if len(found) < 3:
        raise Refusal(f"{what} has {len(found)} files, too few to divide by file; set data.divide=share")
    ordered = sorted(found, key=lambda one: hashlib.sha256(f"{cut.seed} {one.place}".encode()).digest())
    tenth = -(-len(found) // 10)
    valid, test = tenth * cut.valid, tenth * cut.test
    return Splits(ordered[valid + test :], ordered[:valid], ordered[valid : valid + test])


def by_file(found: Sequence[Text], how: str) -> bool:
    """Whether whole files are held out, and not the ends of each."""
    return how == "file" or (how == "auto" and len(found) >= BY_FILE)


def share_out(found: Sequence[Text], what: str, wanted: Cut = WHOLE) -> Splits[Text]:
    """The first eight tenths of each text, the next and the last, cut where a line or a word ends."""
    first, last = 1 - 0.1 * (wanted.valid + wanted.test), 1 - 0.1 * wanted.test
    sides: tuple[list[Text], list[Text], list[Text]] = ([], [], [])
    for one in found:
        valid, test = (whole_words(one.text, int(share * len(one.text))) for share in (first, last))
        for side, part in zip(sides, (one.text[:valid], one.text[valid:test], one.text[test:]), strict=True):
            if not is_blank(part):
                side.append(Text(part, one.place))
    if not all(side or not most for side, most in zip(sides, (1, *wanted.wanted), strict=True)):
        raise Refusal(f"{what} is too short to hold some of it out; {wanted.cure}")
    return Splits(*sides)


def whole_words(text: Whole, at: int) -> int:
    """The next place from `at` on where a line begins, or where none is near, a word; or `at`, where no blank is near.

    The last word of a text is not cut, unless it is longer than words are.
    """
    near = len(text) // 50
    far = at + max(near, WORD)
    behind = str(text[at:far])
    if (line := behind.find("\n", 0, near)) >= 0:
        return at + line + 1
    if word := BLANK.search(behind):
        return at + word.end()
    return at if far < len(text) else len(text)


# ---------------------------------------------------------------------- documents


def documents(splits: Splits[Text], document: str) -> Splits[Text]:
    """The texts that stand in the files of each part."""
    return Splits(*(list(cut(part, document)) for part in (splits.train, splits.valid, splits.test)))


def regroup(splits: Splits[Text], what: str, cut: Cut) -> Splits[Text]:
    """The same texts, near-duplicates on one side: those that were parted are dealt as samples of a file are."""
    parts = (splits.train, splits.valid, splits.test)
    whole = [one for part in parts for one in part]
    sides = np.repeat(np.arange(len(parts)), list(map(len, parts)))
    found = digests(one.text for one in whole)
    made = by_side(whole, held_together(found, sides, lambda value: cut.dealt(side_of(cut.seed, value))))
    if not all(side or not most for side, most in zip(made, (1, *cut.wanted), strict=True)):
        raise Refusal(f"{what} has too few different texts to hold some out; {cut.cure}")
    return Splits(*made)


def lines(found: Iterable[Text]) -> Iterator[str]:
    """The lines of texts, but for blank ones; one at a time."""
    return (line[0] for one in found for block in by_lines(one.pieces()) for line in LINE.finditer(block))


def cut(found: Sequence[Text], document: str) -> Iterator[Text]:
    """Files as the texts that stand in them: each whole, or its paragraphs, which empty lines part, or its lines."""
    for one in found:
        if document == "file":
            yield one
            continue
        blocks = by_lines(one.pieces())
        parts = (
            paragraphs(blocks) if document == "paragraph" else (line for block in blocks for line in block.split("\n"))
        )
        yield from (Text(part.strip(), one.place) for part in parts if part.strip())


def paragraphs(blocks: Iterable[str]) -> Iterator[str]:
    """The paragraphs between empty lines, in blocks of lines."""
    rest = ""
    for block in blocks:
        *whole, rest = PARAGRAPH.split(f"{rest}\n{block}")
        yield from whole
    yield rest
