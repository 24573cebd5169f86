"""A law over all readers: near-duplicates are held on one side of a split, or the share that leaks is told."""

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from heedful.data.collate import Collate
from heedful.data.formats.documents import lines
from heedful.data.near_duplicates import Cut, digest, digests, overlap
from heedful.data.readers.corpus import TextFiles
from heedful.data.readers.questions import Facts
from heedful.data.splits import divide_samples, learn_unseen
from heedful.data.texts_on_disk import Text
from heedful.tasks import TASKS, Task
from heedful.tasks.task import Task as Record
from heedful.training.spec.run_spec import reader_of
from tests.training.runs import short, train

MANY = 60  # different contents, each in four spellings
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "knoll"]


def spellings() -> Iterator[tuple[int, str]]:
    """Sentences, no two of them alike, and each in four ways to write it: far from one another."""
    for way in (
        str,
        str.upper,
        lambda text: f"  {text.title()} ! ",
        lambda text: "«" + text.replace(" ", " - ") + "».",
    ):
        for at in range(MANY):
            yield at, way(f"{WORDS[at % 10]} {WORDS[at // 10]} {WORDS[at * 7 % 10]} stands here")


def key(content: str | bytes) -> str | bytes:
    """Said once more, apart from the package."""
    return "".join(filter(str.isalnum, content.casefold())) if isinstance(content, str) else content


def rows(folder: Path, line: Callable[[int, str], str], name: str = "own.tsv") -> Path:
    (folder / name).write_text("".join(line(*one) + "\n" for one in spellings()), encoding="utf-8")
    return folder / name


def tagged(at: int, text: str) -> str:
    return "\n".join(f"{word}\t{'B-x' if n == at % 3 else 'O'}" for n, word in enumerate(text.split())) + "\n"


def question(at: int, text: str) -> str:
    return json.dumps({"question": f"what of {text[:4]} {at} ?", "context": text, "answers": [text.split()[0]]})


def answered(at: int, text: str) -> str:
    return json.dumps({"text": text, "label": str(at % 2), "task": "parity"})


def dialogue(at: int, text: str) -> str:
    turns = [("user", text), ("assistant", f"number {at} {text}")]
    return json.dumps({"messages": [{"role": role, "content": said} for role, said in turns]})


def sets(folder: Path) -> Path:
    numbers = [f"{way}-{at},{at % 2},{at},1\n{way}-{at},{at % 2},{at},2\n" for way in range(4) for at in range(MANY)]
    (folder / "sets.csv").write_text("".join(numbers), encoding="utf-8")
    return folder / "sets.csv"


def pictures(folder: Path) -> Path:
    for at in range(MANY):
        made = Image.fromarray(np.random.default_rng(at).integers(0, 256, (8, 8, 3), dtype=np.uint8))
        (folder / "all" / f"class{at % 2}").mkdir(parents=True, exist_ok=True)
        for ending in ("png", "bmp", "ppm", "tiff"):  # other bytes, the same pixels
            made.save(folder / "all" / f"class{at % 2}" / f"{at}.{ending}")
    return folder / "all"


def halves(folder: Path) -> Path:
    pictures(folder).rename(folder / "train")
    pictures(folder).rename(folder / "test")
    return folder


def files(folder: Path) -> Path:
    for number, (_, text) in enumerate(spellings()):
        (folder / f"{number}.txt").write_text(f"{text}\n", encoding="utf-8")
    return folder


class Reader(NamedTuple):
    """A task, a maker of its file, what else its data say, and what is told and not held together."""

    task: str
    made: Callable[[Path], Path]
    data: Mapping[str, Any] = MappingProxyType({})
    told: frozenset[str] = frozenset()


def columns(*fields: str) -> Callable[[Path], Path]:
    return lambda folder: rows(folder, lambda at, text: "\t".join(fields).format(text=text, at=at, few=at % 2))


TARGETS, LINES = frozenset({"targets"}), frozenset({"lines"})
READERS = {
    "sentences": Reader("classify", columns("{text}", "{few}")),
    "pairs of sentences": Reader("classify", columns("{text}", "on {text}", "{few}")),
    "several tasks": Reader("classify-several", lambda folder: rows(folder, answered, "own.jsonl")),
    "tags": Reader("tag", lambda folder: rows(folder, tagged)),
    "contexts": Reader("answer", lambda folder: rows(folder, question, "own.jsonl")),
    "conversations": Reader("chat", lambda folder: rows(folder, dialogue, "own.jsonl")),
    "pairs": Reader("pairs", columns("{text}", "{few}"), told=TARGETS),
    "translations": Reader("translation", columns("{text}", "{few}"), told=TARGETS),
    "summaries": Reader("summarisation", columns("{text}", "{few}"), told=TARGETS),
    "sequences": Reader("sequences", columns("{text}", "{few}")),
    "sets": Reader("sets", sets),
    "pictures": Reader("image-classification", pictures, {"pixels": [8, 8]}),
    "pictures in halves": Reader("image-classification", halves, {"pixels": [8, 8]}, frozenset({"images"})),
    "lines": Reader("language-modelling", columns("{text}"), {"document": "line", "longest": 8}),
    "paragraphs": Reader("masked-lm", columns("{text}\n"), {"document": "paragraph", "longest": 8}),
    "files": Reader("language-modelling", files, {"longest": 8}),
    "running text": Reader("language-modelling", columns("{text}"), {"longest": 8}, LINES),
}


@pytest.mark.parametrize("name", READERS)
def test_near_duplicates_are_held_on_one_side_or_told(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    said = {"name": str(reader.made(tmp_path)), **reader.data}
    data: Any = reader_of(reader.task, said)(**said)
    task, splits = TASKS[reader.task].open(data, 1)
    parts = (splits.train, splits.valid, splits.test)
    found = [[task.contents(one) for one in part] for part in parts]
    if reader.task == "sequences":  # whose words are numbers
        found = [[{"sequences": task.as_input(one)} for one in part] for part in parts]
    elif isinstance(data, TextFiles):  # crops, which have no contents of their own
        read = data.read(1)
        found = [[{"lines": line} for line in lines(part)] for part in (read.train, read.valid, read.test)]
    assert all(len(part) > 2 for part in found)
    counted = {}
    for part in found[0][0]:
        learned = {key(one[part]) for one in found[0]}
        for split, held in zip(("valid", "test"), found[1:], strict=True):
            counted[split, part] = sum(key(one[part]) in learned for one in held)
    leaking = {place: count for place, count in counted.items() if count}
    assert {(one.split, one.part): one.count for one in task.overlaps(splits)} == leaking
    assert {part for _, part in leaking} == reader.told


def says_nothing(task: Any) -> bool:
    if isinstance(task, Record):
        kind = type(task.collate)
        return (kind.contents, kind.overlaps) == (Collate.contents, Collate.overlaps)
    return bool((task.contents, task.overlaps) == (Task.contents, Task.overlaps))


def test_every_task_says_what_near_duplicates_are_to_it() -> None:
    silent = {name for name, task in TASKS.items() if says_nothing(task)}
    assert silent == {"series", "in-context"}  # one series, cut in time; and maps that are drawn


def test_no_context_of_the_made_facts_is_learned_from_and_asked_about() -> None:
    task, splits = TASKS["answer"].open(Facts(name="facts", samples=2000, held_out=400), 1)
    assert len(splits.test) == 400 and not task.overlaps(splits)


def test_what_has_no_near_duplicate_keeps_its_side() -> None:
    samples = [f"sentence {at}" for at in range(500)]
    splits = divide_samples([*samples, *(one.upper() for one in samples[:50])], str.casefold, "a file", Cut(7))
    for side, part in enumerate((splits.train, splits.valid, splits.test)):
        for one in part:
            share = hashlib.sha256(f"7 {one.casefold()!r}".encode()).digest()[:4]
            assert side == max(0, int.from_bytes(share, "big") % 10 - 7)


def test_what_is_moved_for_its_class_takes_its_near_duplicates_with_it() -> None:
    samples = [(f"sentence {at}", "common") for at in range(200)]
    splits = divide_samples(samples, lambda one: one[0], "a file")
    text = splits.test[0][0]
    copied = type(splits)(splits.train, splits.valid, [*splits.test, (text.upper() + "!", "rare")])
    made = learn_unseen(copied, lambda one: [one[1]], lambda one: one[0], "too few")
    assert [one for one in made.train if key(one[0]) == key(text)] == [(text, "common"), (text.upper() + "!", "rare")]
    assert made.test == splits.test[1:]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Straße, 12.", "strasse12", True),
        ("Cafe\u0301", "CAFÉ", True),
        ("कि", "का", False),  # marks are parts of letters
        (":-)", ":-(", False),  # nothing is left: as it stands
        ("a" * 2**20 + "B c!", "a" * 2**20 + "bc", True),
        ("\ud800 x", "X", True),
    ],
)
def test_case_blanks_and_punctuation_make_no_difference(one: str, other: str, same: bool) -> None:
    assert (digest(one) == digest(other)) is same


def test_lines_are_compared_in_a_few_bytes_each_and_long_texts_in_pieces() -> None:
    whole = "".join(f"line number {at} of a rather long text that nobody has read to its end\n" for at in range(20_000))
    tracemalloc.start()
    found = digests(lines([Text(whole, "here")]))
    assert overlap("lines", [found, found[:2000], found[2000:4000]])[0].share == 1
    digest(whole)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 24 * len(found) + 4e6


def test_what_leaks_is_told_before_training_in_the_report_and_in_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = columns("{text}", "{few}")(tmp_path)
    words = short("sort", data=own, model__length=64, training__steps=1, training__warmup=0)
    result = train(words, tmp_path / "run")
    assert result["near_duplicates"] == {"valid targets": 1.0, "test targets": 1.0}
    begun = capsys.readouterr().err.partition("step 1/1")[0]
    assert "learned from: 100.0 % of valid targets, 100.0 % of test targets; the scores say less" in begun
    assert "near-duplicate in the training data" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
