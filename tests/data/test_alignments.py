"""Files of links: what is written is read, every notation of public gold files, and every fault by file and line."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.formats import pharaoh
from heedful.data.parallel_sample import Links
from heedful.errors import Refusal

LINKS = st.frozensets(st.tuples(st.integers(0, 300), st.integers(0, 300)))


def file(folder: Path, text: str | bytes, name: str = "links.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def links(sure: set[tuple[int, int]], possible: Iterable[tuple[int, int]] = ()) -> Links:
    return Links(frozenset(sure), frozenset({*sure, *possible}))


@given(st.lists(LINKS, min_size=1).filter(any))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, sentences: list[frozenset]) -> None:
    path = tmp_path_factory.mktemp("links") / "links.txt"
    path.write_text("".join(f"{pharaoh.write(some)}\n" for some in sentences))
    assert pharaoh.read_links(path) == [Links(some, some) for some in sentences]


def test_links_are_written_in_order_and_once() -> None:
    assert pharaoh.write([(10, 2), (2, 10), (2, 9), (10, 2)]) == "2-9 2-10 10-2"
    assert pharaoh.write([]) == ""


def test_possible_links_are_read_in_both_notations_and_sure_ones_are_possible_too(tmp_path: Path) -> None:
    read = pharaoh.read_links(file(tmp_path, "0-0 1?2 10p11\n3p3 3-3\n"))
    assert read == [links({(0, 0)}, {(1, 2), (10, 11)}), links({(3, 3)})]


def test_a_sentence_without_links_is_an_empty_line_wherever_it_stands(tmp_path: Path) -> None:
    assert pharaoh.read_links(file(tmp_path, "\n0-0\n\n")) == [links(set()), links({(0, 0)}), links(set())]


def test_words_may_count_from_one(tmp_path: Path) -> None:
    assert pharaoh.read_links(file(tmp_path, "1-1 3p2"), first=1) == [links({(0, 0)}, {(2, 1)})]


def test_a_gzipped_file_is_read(tmp_path: Path) -> None:
    assert pharaoh.read_links(file(tmp_path, gzip.compress(b"0-0 1-2\n"), "links.gz")) == [links({(0, 0), (1, 2)})]


def test_windows_ends_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    assert pharaoh.read_links(file(tmp_path, "\ufeff0-0\r\n1-1\r\n")) == [links({(0, 0)}), links({(1, 1)})]


@pytest.mark.parametrize(
    "text", ["0", "0-", "-0", "0-1-2", "a-b", "0:1", "0--1", "²-1", "0P1", "1.0-2", "0-9999999999"]
)
def test_what_is_no_link_is_refused_with_file_line_and_notation(tmp_path: Path, text: str) -> None:
    path = file(tmp_path, f"0-0\n0-0 {text}\n")
    with pytest.raises(Refusal, match="is no link; write 3-4") as refused:
        pharaoh.read_links(path)
    assert str(refused.value).startswith(f"{path}, line 2: {text!r}")


def test_word_zero_of_a_file_that_counts_from_one_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, "1-1\n1-0\n")
    with pytest.raises(Refusal, match=r"line 2: 1-0 goes to word 0, and words were to count from 1"):
        pharaoh.read_links(path, first=1)


@pytest.mark.parametrize("name", ["missing.txt", "empty.txt"])
def test_a_file_that_is_missing_or_empty_is_refused(tmp_path: Path, name: str) -> None:
    file(tmp_path, "", "empty.txt")
    with pytest.raises(Refusal, match=name):
        pharaoh.read_links(tmp_path / name)


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ((3, 0), "3-0, counted from 0, goes to source word 3, and there are 3; "),
        ((0, 2), "0-2, .* target word 2, .* 2; "),
    ],
)
@pytest.mark.parametrize("sure", [True, False])
def test_links_to_words_that_are_not_there_are_refused(link: tuple[int, int], fault: str, sure: bool) -> None:
    given = links({(0, 0), link}) if sure else links({(0, 0)}, {link})
    with pytest.raises(Refusal, match=f"^gold.txt, line 7: {fault}"):
        pharaoh.check(given, ["a", "b", "c"], ["x", "y"], "gold.txt", 7)


def test_links_to_words_that_are_there_pass() -> None:
    pharaoh.check(links({(0, 1), (2, 0)}), ["a", "b", "c"], ["x", "y"], "gold.txt", 1)
