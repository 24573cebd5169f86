"""Texts of files, folders and public sets: what is read, how it is divided, and what is refused."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.formats.documents import WORD, cut, divide_texts, read_texts, share_out
from heedful.data.near_duplicates import Cut
from heedful.data.parallel_sample import Sides
from heedful.data.readers.corpus import Captions, TextFiles, TextSets
from heedful.data.texts_on_disk import Text
from heedful.errors import Refusal


def book(lines: int = 300) -> str:
    return "".join(f"This is line number {at} of a book.\n" for at in range(lines))


def test_one_file_is_divided_by_share_at_the_ends_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text(book(), encoding="utf-8")
    for data in (TextFiles(name=str(path)), TextFiles(train=str(path))):
        splits = data.read(1)
        parts = [part[0].text for part in (splits.train, splits.valid, splits.test)]
        assert "".join(parts) == book() and all(part.endswith("\n") for part in parts)
        assert [round(10 * len(part) / len(book())) for part in parts] == [8, 1, 1]


def test_a_folder_of_many_files_is_divided_by_file_and_a_file_keeps_its_side(tmp_path: Path) -> None:
    for at in range(30):
        place = tmp_path / f"{at % 3}" / f"{at}.txt"
        place.parent.mkdir(exist_ok=True)
        place.write_text(book(5 + at), encoding="utf-8")
    (tmp_path / "0" / "more.txt.gz").write_bytes(gzip.compress(book(4).encode()))
    (tmp_path / "0" / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "not.txt").write_text("no", encoding="utf-8")
    splits = TextFiles(name=str(tmp_path)).read(1)
    sides = [{one.place for one in part} for part in (splits.train, splits.valid, splits.test)]
    assert [len(side) for side in sides] == [23, 4, 4] and len(set.union(*sides)) == 31
    assert splits == TextFiles(name=str(tmp_path)).read(2)
    assert splits != TextFiles(name=str(tmp_path), split_seed=1).read(1)
    every = TextFiles(name=str(tmp_path), divide="share").read(1)
    assert len(every.train) == 31


def test_a_text_is_known_by_its_ending_in_capitals_or_not(tmp_path: Path) -> None:
    for name in ("A.TXT", "b.Md", "c.doc"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "folder.txt").mkdir()
    assert [one.text for one in read_texts(str(tmp_path))] == ["A.TXT", "b.Md"]


@pytest.mark.parametrize("document", ["file", "paragraph", "line"])
def test_what_is_a_text_of_its_own_can_be_said(document: str) -> None:
    found = [text.text for text in cut([Text("one\ntwo\n\nthree\n", "here"), Text("four", "there")], document)]
    expected = {
        "file": ["one\ntwo\n\nthree\n", "four"],
        "paragraph": ["one\ntwo", "three", "four"],
        "line": ["one", "two", "three", "four"],
    }
    assert found == expected[document]


def worded(text: str) -> bool:
    return len(text.split()) > 25 and max(map(len, text.split())) < WORD


@given(st.text(alphabet="ab \n", min_size=60, max_size=400).filter(worded))
def test_shares_join_to_the_text_and_no_word_is_cut(text: str) -> None:
    try:
        splits = share_out([Text(text, "here")], "here")
    except Refusal:  # all that comes behind a share is blank
        return
    parts = [part[0].text for part in (splits.train, splits.valid, splits.test)]
    assert "".join(parts) == text and [word for part in parts for word in part.split()] == text.split()


@pytest.mark.parametrize("text", ["天地玄黃宇宙洪荒" * 6000, "x" * 300_000])
def test_a_text_without_blanks_is_cut_between_characters(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    splits = TextFiles(name=str(tmp_path / "a.txt")).read(1)
    parts = [part[0].text for part in (splits.train, splits.valid, splits.test)]
    assert "".join(parts) == text and [round(10 * len(part) / len(text)) for part in parts] == [8, 1, 1]


def test_what_cannot_be_read_or_divided_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refusal, match="holds no text files"):
        read_texts(str(tmp_path / "empty"))
    with pytest.raises(Refusal, match="too short to hold some of it out"):
        share_out([Text("word", "here")], "here")
    with pytest.raises(Refusal, match=r"too few to divide by file; set data\.divide=share"):
        divide_texts([Text("a", "a"), Text("b", "b")], "here", "file", Cut())
    with pytest.raises(Refusal, match="are pairs, and this task reads texts"):
        read_texts(Sides(source="a", target="b"))
    with pytest.raises(Refusal, match="does not exist"):
        TextFiles(name="captoins").read(1)


def test_captions_that_are_tested_are_never_learned_from() -> None:
    splits = Captions(name="captions", samples=300, held_out=40).read(1)
    train, valid, test = ({one.text for one in part} for part in (splits.train, splits.valid, splits.test))
    assert (len(train), len(valid), len(test)) == (300, 10, 40) and not train & test and not train & valid


def test_public_sets_are_divided_as_their_scores_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    (tmp_path / "tinyshakespeare").mkdir()
    (tmp_path / "tinyshakespeare" / "input.txt").write_text("a" * 905 + "b" * 100, encoding="utf-8")
    splits = TextSets(name="tinyshakespeare").read(1)
    assert (len(splits.train[0].text), splits.valid) == (904, splits.test)
    (tmp_path / "wikitext-2").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / "wikitext-2" / f"{split}.txt.gz").write_bytes(gzip.compress(f" \n = {split} = \n".encode()))
    splits = TextSets(name="wikitext-2").read(1)
    assert splits.test[0].text == " \n = test = \n"
    (tmp_path / "wikitext-2" / "valid.txt.gz").unlink()
    with pytest.raises(Refusal, match=r"has no valid\.txt"):
        TextSets(name="wikitext-2").read(1)
