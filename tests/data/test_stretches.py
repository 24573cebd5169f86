"""Long texts stay in their files: the same texts and tokens, in memory that their tokens alone grow with."""

import gzip
import os
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful import terminal
from heedful.data import line_files, texts_on_disk, token_crops
from heedful.data.formats.documents import cut, lines, share_out
from heedful.data.near_duplicates import digests
from heedful.data.texts_on_disk import Stretch, Text, is_blank, text_of
from heedful.data.token_crops import Stream
from heedful.errors import Refusal
from heedful.tasks.text.cropping import CropLearned, crop_texts
from heedful.tasks.text.language_modelling import TASK
from heedful.tokenizers import train

PIECES = ["a", "bc ", "\n", "\r\n", "\r", "日本", "é", "😀", "\n\n", " \n \n", "word " * 5, "\ufeff"]
contents = st.lists(st.sampled_from(PIECES), min_size=1).map("".join).filter(lambda text: text.strip("\ufeff").strip())


def long_text(path: Path, block: int = 8) -> Stretch:
    """The text of a file as if that were a long one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts_on_disk, "HELD", 0)
        patch.setattr(texts_on_disk, "BLOCK", block)
        found = text_of(path)
    assert isinstance(found, Stretch)
    return found


@settings(max_examples=25, deadline=None)
@given(
    text=contents,
    block=st.integers(8, 40),
    packed=st.booleans(),
    ends=st.tuples(st.integers(0, 99), st.integers(0, 99)),
)
def test_a_text_in_its_file_is_the_text_in_memory(text, block, packed, ends, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "stretch"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    whole, long = line_files.text(path), long_text(path, block)
    assert (str(long), len(long)) == (whole, len(whole)) and all(map(len, long))
    part, own = whole[ends[0] : ends[1]], long[ends[0] : ends[1]]
    assert (str(own), len(own), is_blank(own)) == (part, len(part), not part.strip())
    assert str(own[1:3]) == part[1:3]
    for document in ("file", "paragraph", "line"):
        made = [list(cut([Text(one, "here")], document)) for one in (whole, long)]
        assert [str(one.text) for one in made[0]] == [str(one.text) for one in made[1]]
    assert list(lines([Text(whole, "")])) == list(lines([Text(long, "")]))
    assert digests([whole, part]).tolist() == digests([long, own]).tolist()


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_a_text_in_its_file_is_divided_and_has_tokens_as_in_memory(kind, tmp_path, monkeypatch):
    path = tmp_path / "text"
    path.write_text("".join(f"The {at} of a book, é.{' ' * (at % 3)}\n" for at in range(300)), encoding="utf-8")
    tokenizer = train([line_files.text(path)], kind, size=300)
    monkeypatch.setattr(token_crops, "LONG", 1100)
    monkeypatch.setattr(token_crops, "TOGETHER", 100)
    made = []
    for text in (line_files.text(path), long_text(path, 1000)):
        splits = share_out([Text(text, "here")], "here")
        made.append(
            [Stream.of([one], tokenizer, 5) for part in (splits.train, splits.valid, splits.test) for one in part]
        )
    for one, two in zip(*made, strict=True):
        assert one.ids.tolist() == two.ids.tolist() and one.characters == two.characters
    assert kind == "words" or made[0][0].ids.tolist()[1:-6] == tokenizer.encode(str(splits.train[0].text))


def test_a_long_text_that_is_wrong_or_changes_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "text"
    monkeypatch.setattr(texts_on_disk, "HELD", 0)
    monkeypatch.setattr(texts_on_disk, "BLOCK", 8)
    for wrong, said in {
        "a\nb\nc\nd\ne\n\u00fc\n".encode("latin-1"): "text, line 6: not UTF-8, most likely latin-1; .*convert the file",
        b" \n" * 20: "text is empty; it needs at least one line",
        gzip.compress(os.urandom(99))[:-20]: "text is gzipped but not whole",
    }.items():
        path.write_bytes(wrong)
        with pytest.raises(Refusal, match=said):
            text_of(path)
    path.write_text("a text that is long")
    long = text_of(path)
    path.write_text("another text")
    with pytest.raises(Refusal, match="changed while it was read"):
        str(long)
    path.write_bytes(gzip.compress(b"a\n" * 999))
    monkeypatch.setattr(line_files, "MOST", 1000)
    with pytest.raises(Refusal, match="unfolds to more than"):
        text_of(path)


def test_memory_grows_with_the_bytes_of_tokens_alone(tmp_path, monkeypatch):
    path, tokenizer = tmp_path / "text", train(["This is the line 0123456789 of a long book."], "bpe", size=300)
    path.write_text("".join(f"This is the line {at} of a long book.\n" for at in range(15_000)), encoding="utf-8")
    monkeypatch.setattr(texts_on_disk, "HELD", 1 << 14)
    monkeypatch.setattr(texts_on_disk, "BLOCK", 1 << 14)
    monkeypatch.setattr(token_crops, "LONG", 1 << 12)
    tracemalloc.start()
    made = crop_texts(TASK.reader("files")(train=str(path)).read(1), CropLearned(tokenizer, longest=32))
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    stream = made.train[0].stream
    assert stream.ids.itemsize == 2 and len(made.train) > 3000
    assert held < 4 * stream.count and most < held + path.stat().st_size


def test_long_work_says_that_it_goes_on_and_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "PATIENCE", 0.02)
    with terminal.progress("one call"):
        time.sleep(0.1)  # it tells nothing until it is over
    with terminal.progress("pieces", 100) as heard:
        heard(50)
        time.sleep(0.1)
        heard(50)
        time.sleep(0.1)
    said = capsys.readouterr().err.splitlines()
    assert "heedful: one call: 0 s" in said and "heedful: pieces: 50%" in said and "heedful: pieces: 100%" not in said


def test_a_large_file_is_told_of_at_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "text").write_text("a text")
    monkeypatch.setattr(line_files, "TOLD", 5)
    long_text(tmp_path / "text")
    assert capsys.readouterr().err.startswith(f"heedful: reading {tmp_path / 'text'}, ")
