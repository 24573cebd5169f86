"""Readers of lists of names: a folder with a file for each language, a name a line, and what of them is held out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unicodedata import normalize

from heedful.data import line_files
from heedful.data.formats.labelled_line import Line
from heedful.data.near_duplicates import Cut, same_spelling
from heedful.data.parallel_sample import Pair
from heedful.data.public import download
from heedful.data.readers.labelled_sequences import each, word_numbers
from heedful.data.readers.reader import Bounded, Divided, Made, Reader, SampleFiles
from heedful.data.readers.word_sequences import WordSplits
from heedful.data.splits import Splits, divide_samples, learn_unseen
from heedful.errors import Refusal

ENDINGS = (".txt", ".txt.gz")


class InventedNames(Bounded, Made):
    """Names of three invented languages, made on the fly."""

    def read(self, seed: int) -> WordSplits:
        from heedful.data.toys.invented_names import invented_names

        made = invented_names(self, seed)
        return by_letters(Splits(*([Pair(*one) for one in part] for part in (made.train, made.valid, made.test))))


class PublicNames(Bounded, Divided, Reader):
    """A public set of such lists."""

    def read(self, seed: int) -> WordSplits:
        return hold_out(names_in(download.home(self.name)), self.name, Cut(self.split_seed))


class NameLists(Bounded, SampleFiles):
    """A user's own folder of lists; or a folder to learn from, one to choose by and one to test on."""

    def sample(self, given: Pair | Sequence[str]) -> Pair:
        """A name and its language."""
        return given if isinstance(given, Pair) else Pair(given[0], given[1])

    def from_memory(self, samples: object) -> WordSplits:
        """Names, each with its language."""
        return by_letters(super().from_memory(samples))

    def read(self, seed: int) -> WordSplits:
        given = (self.train, self.valid, self.test) if self.name == "files" else (self.name, None, None)
        if given[1:] == (None, None):
            return hold_out(names_in(folder_of(given[0])), str(given[0]), self.cut)
        return by_letters(Splits(*(names_in(folder_of(one)) if one is not None else [] for one in given)))


READERS: dict[str, type[Reader]] = {"invented-names": InventedNames, "names": PublicNames, "files": NameLists}


def folder_of(given: object) -> Path:
    """The folder that is meant; a file, or what is not there, is refused."""
    path = Path(str(given))
    if not path.is_dir():
        raise Refusal(f"{path} is no folder; give a folder with a list for each class, English.txt, a name a line")
    return path


def names_in(folder: Path) -> list[Pair]:
    """Every name of a folder of lists with the language that its list is called by, each once a language.

    Names are the same whatever their case, blanks and Unicode form: of what is written twice, the first counts.
    """
    found: dict[tuple[str, str], Pair] = {}
    for path in sorted(folder.iterdir()):
        ending = next((one for one in ENDINGS if path.name.lower().endswith(one)), None)
        if ending is None or path.name.startswith(".") or path.is_dir():
            continue
        language = path.name[: -len(ending)]
        for number, line in enumerate(line_files.lines(path), 1):
            if name := " ".join(normalize("NFC", line).split()):
                found.setdefault((same_spelling(name), language), Pair(name, language, (str(path),) * 2, number))
    if len({language for _, language in found}) < 2:
        raise Refusal(f"{folder} holds no two lists; put a file for each class there, English.txt, a name a line")
    return list(found.values())


def hold_out(names: list[Pair], what: str, cut: Cut) -> WordSplits:
    """Names of which a tenth is held out to choose by and a tenth to test on; what is spelt alike is on one side."""
    made = divide_samples(names, lambda one: same_spelling(one.source), what, cut)
    few = f"{what} has too few names of each class"
    return by_letters(learn_unseen(made, lambda one: [one.target], lambda one: one.source, few))


def by_letters(read: Splits[Pair]) -> WordSplits:
    """Names as sequences of letters, and all letters that there are."""
    letters = tuple(sorted({letter for one in (*read.train, *read.valid, *read.test) for letter in one.source}))
    number = {letter: at for at, letter in enumerate(letters)}
    made = each(read, lambda one: Line(word_numbers(one.source, number), one.target, one.where(0)))
    return WordSplits(made.train, made.valid, made.test, letters)
