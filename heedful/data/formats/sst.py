"""The Stanford Sentiment Treebank (Socher et al., 2013), whole sentences and the phrases in them, good or bad."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data import line_files
from heedful.data.public import download
from heedful.data.splits import Splits
from heedful.errors import Refusal, unknown_word

NAMES = {"0": "negative", "1": "positive"}
FORMS = ("sentences", "phrases", "glue")


def sst(form: str) -> Splits[tuple[str, ...]]:
    """Whole sentences; the same to choose by and test on, but phrases to learn from as well; or as GLUE divides it.

    GLUE's own test has no public answers, so its 872 sentences to choose by are what is tested on there.
    """
    if form not in FORMS:
        raise unknown_word("data.form of sst:", form, FORMS)
    home = download.home("sst")
    phrases = [list(of_tsv(home / f"glue_phrases.{split}.tsv")) for split in ("train", "dev", "test")]
    if form == "glue":
        return Splits(*phrases)
    train, valid, test = (list(of_lines(home / f"stsa.binary.{split}")) for split in ("train", "dev", "test"))
    held = {text for text, _ in (*valid, *test)}
    more = [row for row in dict.fromkeys((*train, *phrases[0], *phrases[1])) if row[0] not in held]
    return Splits(more if form == "phrases" else train, valid, test)


def of_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Text and class of lines such as `1 a fine film`."""
    for line in line_files.lines(download.there(path)):
        label, _, text = line.partition(" ")
        yield text.strip(), class_name(label, path)


def of_tsv(path: Path) -> Iterator[tuple[str, str]]:
    """Text and class of lines with a tab, below a header."""
    for line in line_files.lines(download.there(path))[1:]:
        text, _, label = line.rpartition("\t")
        yield text.strip(), class_name(label, path)


def class_name(label: str, path: Path) -> str:
    """The name of a class, where there is one."""
    if label not in NAMES:
        raise Refusal(f"{path}: the class {label[:60]!r} is neither 0 nor 1; remove the file and fetch it again")
    return NAMES[label]
