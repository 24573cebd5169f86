"""Files of any size are read a block at a time, and words are counted in bounded memory."""

import gzip
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.errors import Refusal
from heedful.tokenizers import text_files, train, train_files
from heedful.tokenizers.chunks import by_tokens, by_words
from heedful.tokenizers.rust_engines import splitter
from heedful.tokenizers.text_files import lines_of
from heedful.tokenizers.training.counts import Letters, Words
from tests.tokenizers.corpus import TEXTS

PIECES = ["a", "bc", " ", "  ", "\n", "\r\n", "日本", "é", "x" * 30]
contents = st.lists(st.sampled_from(PIECES)).map("".join).filter(str.strip)


def read(path: Path) -> str:
    return "\n".join(lines_of(path))


def counted(blocks: list[str]) -> Counter[str]:
    words = Words()
    for block in blocks:
        words.add_lines(block)
    return words.counts


@pytest.mark.parametrize("block", [5, 8, 1 << 20])
@example(text="a bc a bc", packed=False)
@settings(max_examples=100, deadline=None)
@given(text=contents, packed=st.booleans())
def test_blocks_join_to_the_words_of_the_file(block, text, packed, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "text"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK", block)
        blocks = list(lines_of(path))
    assert "".join("".join(blocks).split()) == "".join(text.split())  # nothing is lost, doubled or torn
    if max(len(word.encode()) for word in text.split()) < block - 1:
        assert " ".join(blocks).split() == text.split()  # no word is cut that fits into a block
        if text.replace("\r\n", " ").replace("\n", " ") == " ".join(text.split()):
            assert counted(blocks) == Counter(text.split())
    if block == 1 << 20:
        assert "\n".join(blocks).rstrip("\n") == text.replace("\r\n", "\n").rstrip("\n")


def test_a_file_is_never_read_whole(tmp_path, monkeypatch):
    path, asked, told = tmp_path / "text", [], []
    path.write_text("\n".join(TEXTS * 5), encoding="utf-8")
    size = path.stat().st_size
    monkeypatch.setattr(text_files, "BLOCK", 4096)
    original = text_files.open_text

    class Counting:
        def __init__(self, file):
            self.file = file

        def read(self, count: int) -> bytes:
            asked.append(count)
            return self.file.read(count)

    def spying(path: Path):
        from contextlib import contextmanager

        @contextmanager
        def both():
            with original(path) as (file, raw):
                yield Counting(file), raw

        return both()

    monkeypatch.setattr(text_files, "open_text", spying)
    longest = max(map(len, lines_of(path, told.append)))
    assert set(asked) == {4096} and len(asked) > size // 4096
    assert longest < 2 * 4096
    assert sum(told) == size


def test_a_line_without_end_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK", 1000)
    (tmp_path / "text").write_text("日" * 5000, encoding="utf-8")
    blocks = list(lines_of(tmp_path / "text"))
    assert max(map(len, blocks)) < 1000
    assert "".join(blocks) == "日" * 5000


def test_gzipped_and_plain_files_and_those_with_a_mark_are_alike(tmp_path):
    text = "\n".join(TEXTS[:50])
    (tmp_path / "plain").write_text(text, encoding="utf-8")
    (tmp_path / "marked").write_text(text, encoding="utf-8-sig")
    (tmp_path / "windows").write_text(text, encoding="utf-8", newline="\r\n")
    (tmp_path / "packed").write_bytes(gzip.compress(text[:99].encode()) + gzip.compress(text[99:].encode()))
    for name in ("marked", "windows", "packed"):
        assert read(tmp_path / name) == text


BAD = {
    "nothing": (b"", "is empty; it needs at least one line"),
    "blanks": (b" \n\t\n", "is empty; it needs at least one line"),
    "nothing packed": (gzip.compress(b""), "is empty; it needs at least one line"),
    "latin": (
        "a\nb\nü".encode("latin-1"),
        ", line 3: not UTF-8; convert the file, ",
    ),
    "latin, packed": (gzip.compress("ü\n".encode("latin-1")), ", line 1: not UTF-8; "),
    "cut within a character": (("a\n" * 1000 + "é").encode()[:-1], ", line 1001: not UTF-8; "),
    "packed, cut short": (
        gzip.compress(b"hello world" * 100)[:-20],
        "is gzipped and damaged or cut short; copy",
    ),
    "packed, damaged": (gzip.compress(b"hello world" * 100)[:20] + b"\0" * 20, "is gzipped and damaged or cut short"),
    "packed, and not": (b"\x1f\x8bhello", "is gzipped and damaged or cut short"),
}


@pytest.mark.parametrize("wrong", BAD)
@pytest.mark.parametrize("block", [5, 1 << 20])
def test_a_file_that_cannot_be_read_is_named_with_its_line(wrong, block, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK", block)
    data, said = BAD[wrong]
    (tmp_path / "text").write_bytes(data)
    with pytest.raises(Refusal, match=rf"^{re.escape(str(tmp_path / 'text'))} ?{re.escape(said)}"):
        train_files([tmp_path / "text"], "words")


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"none does not exist; check the path$"):
        train_files([tmp_path / "none"])
    with pytest.raises(Refusal, match=r"is a folder; name a file in it$"):
        train_files([tmp_path])


def brute(texts: list[str], split) -> Counter[str]:
    """The words of texts as the engine cuts them, one text after the other."""
    return Counter(word for text in texts if text for word, _ in split.pre_tokenize_str(f" {text}"))


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(st.text(alphabet="ab1, \t\n日.", max_size=30)))
def test_words_are_counted_as_the_engine_cuts_them(texts):
    split = splitter("bpe", "apart", "apart")
    words = Words()
    for text in texts:
        words.add(text)
    counts = words.split(lambda text: [word for word, _ in split.pre_tokenize_str(text)])
    assert Counter(counts.words) == brute(texts, split)
    assert counts.characters == Counter(sign for word, count in counts.words.items() for sign in word * count)
    assert list(counts.words) == sorted(counts.words, key=lambda word: (-counts.words[word], word))


@settings(max_examples=200, deadline=None)
@given(block=st.text(alphabet="ab \n", max_size=60))
def test_lines_are_counted_as_texts(block):
    lines, texts = Words(), Words()
    lines.add_lines(block)
    for text in block.split("\n"):
        texts.add(text)
    assert lines.counts == texts.counts


def test_special_tokens_are_cut_out_with_the_white_space_around_them():
    words, letters = Words(["<U:>", "<U:>x"]), Letters(["<U:>"])
    words.add("a <U:> b<U:>xc<pad> <0x4A> d <u:>")
    assert words.counts == {"a": 1, "b": 1, "c": 1, "d": 1, "<u:>": 1}
    letters.add_lines("a<U:>b\n <end>c")
    assert letters.characters == {"a": 1, "b": 1, "c": 1}


def test_the_rarest_words_are_let_go_where_there_are_too_many():
    words = Words(most=100)
    for number in range(5000):
        words.add(f"often {number % 7} w{number}")
    assert len(words.counts) <= 100
    assert words.counts["often"] == 5000 and words.counts["3"] == 714
    counts = words.split(lambda text: [text], kept=5)
    assert list(counts.words) == [" often", " 0", " 1", " 2", " 3"]
    assert counts.let_go == 5000 + 8 - 5
    assert counts.characters["w"] == 5000  # what they were written in is not forgotten


LONG = "".join(
    f"{word}{' ' * (at % 7 == 0)} {word[::-1]}{chr(10) * (1 + at % 3)}"
    for at, word in enumerate(["the", "cat,", "42", "sat!", "日本", "é", "on", "it's", "mat"] * 40)
)


@pytest.mark.parametrize("kind", ["characters", "bpe", "bpe_characters", "wordpiece", "unigram"])
def test_a_long_text_has_the_same_tokens_in_parts(kind):
    tokenizer = train([LONG], kind, size=400)
    parts = list(by_tokens([LONG], tokenizer.encode_all, 300))
    assert len(parts) > 2
    assert [at for ids in tokenizer.encode_all(parts) for at in ids] == tokenizer.encode(LONG)


def test_a_text_is_not_cut_where_its_tokens_would_change():
    assert len(list(by_tokens(["ab\ncd " * 999], lambda texts: [[len(one)] for one in texts], 20))) == 1


@pytest.mark.parametrize("long", [5, 50])
def test_a_long_text_has_the_same_words_in_parts(long):
    whole, parted = Words(), Words()
    whole.add(LONG)
    for part in by_words([LONG], long):
        parted.add(part)
    assert whole.counts == parted.counts and len(list(by_words([LONG], long))) > 10
