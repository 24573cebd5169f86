"""Pairs of long files stay there: the same samples, each made when it is asked for."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from heedful.data import texts_on_disk
from heedful.data.lazy_samples import Made
from heedful.data.parallel_sample import Sides
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.models import build
from heedful.tasks.text.translation import TASK
from heedful.training.data_checksum import sum_of
from heedful.training.prepare import fitting

FILES: Any = TASK.reader("files")


def written(folder: Path, count: int) -> dict[str, Any]:
    """The same pairs in one file and in two, with blank lines and ends of lines of all kinds."""
    rows = [(f"a line {at % 97} of {at}", f"eine {at} 日本") for at in range(count)]
    both = ["\t".join(row) + ("\r\n" if at % 5 == 0 else "\n") + "\n" * (at % 11 == 0) for at, row in enumerate(rows)]
    (folder / "pairs.tsv").write_bytes("".join(both).encode())
    for side in (0, 1):
        (folder / f"{side}.txt").write_text("\n".join(row[side] for row in rows), encoding="utf-8")
    sides = Sides(source=str(folder / "0.txt"), target=str(folder / "1.txt"))
    return {"one": {"name": str(folder / "pairs.tsv")}, "two": {"train": sides}}


@pytest.mark.parametrize("form", ["one", "two"])
def test_samples_that_stay_in_their_files_are_those_in_memory(form: str, tmp_path: Path) -> None:
    data = FILES(**written(tmp_path, 300)[form], tokenizer="bpe(size=300)")
    task, held = TASK.open(data, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts_on_disk, "HELD", 0)
        patch.setattr(texts_on_disk, "BLOCK", 100)
        own, long = TASK.open(data, 1)
        assert own.tokenizer.layout.text == task.tokenizer.layout.text
        for one, two in zip((held.train, held.valid, held.test), (long.train, long.valid, long.test), strict=True):
            assert isinstance(one, list) and isinstance(two, Made) and one == list(two) == two[:]
        assert sum_of(held) == sum_of(long) and own.overlaps(long) == task.overlaps(held)


def test_faults_of_long_files_are_told_with_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_on_disk, "HELD", 0)
    path = tmp_path / "pairs.tsv"
    for text, said in {
        "a\tb\n\nc\n": "line 3: one field, not two",
        "a\tb\nc\t \n": "line 2: the target is empty",
    }.items():
        path.write_text(text)
        with pytest.raises(Refusal, match=said):
            TASK.open(FILES(name=str(path)), 1)
    (tmp_path / "two").write_text("a\nb\nc\n")
    with pytest.raises(Refusal, match=r"has 2 lines and .* has 3"):
        TASK.open(FILES(train=Sides(source=str(path), target=str(tmp_path / "two"))), 1)


def test_long_pairs_take_a_few_bytes_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = FILES(**written(tmp_path, 3000)["one"])
    monkeypatch.setattr(texts_on_disk, "HELD", 0)
    task = TASK.open(data, 1)[0]  # this imports what is needed
    tracemalloc.start()
    splits = task.reopen(data, 1)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    tokens = sum(
        len(one.source) + len(one.target) for part in (splits.train, splits.valid, splits.test) for one in part
    )
    assert held < 1.3 * tokens + 50 * 3000


def test_long_pairs_of_which_some_are_dropped_stay_in_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts_on_disk, "HELD", 0)
    task, splits = TASK.open(FILES(**written(tmp_path, 300)["one"]), 1)
    longest = max(map(task.length, [*splits.train, *splits.valid, *splits.test]))
    spec = build("transformer", vocab=300, width=8, depth=1, heads=1, length=longest - 1).spec
    held_out = [[one for one in part if task.length(one) < longest] for part in (splits.valid, splits.test)]
    with pytest.warns(UserWarning, match="samples to learn from are longer"):
        short = fitting(Splits(splits.train, *held_out), task, spec, "drop")
    assert isinstance(short.train, Made) and 0 < len(short.train) < len(splits.train)
    assert list(short.train) == [one for one in splits.train if task.length(one) < longest]
