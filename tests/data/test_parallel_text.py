"""Parallel text in files: two files, gzipped or plain, or one with tabs; every fault by file and line."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful.data import line_files
from heedful.data.formats import pharaoh
from heedful.data.formats.parallel_text import read_pairs
from heedful.data.parallel_sample import Pair, Sides
from heedful.errors import Refusal

SOURCE, TARGET = ["a dog", "two cats", "Hütte  über"], ["ein Hund", "zwei Katzen", "日本"]
LINKS = ["0-0 1-1", "", "1?0"]
# Whatever Python or Unicode calls the end of a line, only \n is one; an \r before it belongs to the end too.
SIGNS = st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\t\ufeff") | st.sampled_from(
    "\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x85"
)
SIDE = st.text(SIGNS, min_size=1).filter(str.strip)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, object], str]:
    def made(name: str, content: object) -> str:
        lines = content if isinstance(content, bytes | str) else "".join(f"{line}\n" for line in content)  # type: ignore[attr-defined]
        data = lines if isinstance(lines, bytes) else lines.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(tmp_path / name)

    return made


File = Callable[[str, object], str]


def texts(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def refused(where: str | Sides) -> str:
    with pytest.raises(Refusal) as refusal:
        read_pairs(where)
    line = str(refusal.value)
    assert "\n" not in line and "; " in line  # one sentence, with a cure
    return line


# ---------------------------------------------------------------------- what is read


@pytest.mark.parametrize("ends", [("", ""), (".gz", ".gz"), ("", ".gz"), (".gz", "")])
def test_two_files_are_read_line_by_line_gzipped_or_plain(file: File, ends: tuple[str, str]) -> None:
    sides = Sides(source=file(f"a.en{ends[0]}", SOURCE), target=file(f"a.de{ends[1]}", TARGET))
    found = read_pairs(sides)
    assert texts(found) == list(zip(SOURCE, TARGET, strict=True))
    for number, pair in enumerate(found, 1):
        assert (pair.where(0), pair.where(1)) == (f"{sides.source}, line {number}", f"{sides.target}, line {number}")


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.gz"])
def test_a_file_with_tabs_says_the_same_as_two_files(file: File, name: str) -> None:
    path = file(name, [f"{s}\t{t}" for s, t in zip(SOURCE, TARGET, strict=True)])
    assert texts(read_pairs(path)) == list(zip(SOURCE, TARGET, strict=True))
    assert [pair.where(1) for pair in read_pairs(path)] == [f"{path}, line {n}" for n in (1, 2, 3)]


def test_gzip_is_told_by_its_first_bytes_and_not_by_its_name(file: File) -> None:
    zipped = file("a.en", gzip.compress(b"one\n") + gzip.compress(b"two\n"))  # two members, as `cat` joins them
    assert texts(read_pairs(Sides(source=zipped, target=file("a.de", "eins\nzwei\n")))) == [
        ("one", "eins"),
        ("two", "zwei"),
    ]


@given(st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_as_it_was_written_and_no_sign_but_the_newline_ends_a_line(
    tmp_path: Path, pairs: list[tuple[str, str]]
) -> None:
    paths = [tmp_path / name for name in ("a.en", "a.de.gz", "a.tsv")]
    source, target = (("".join(f"{pair[side]}\n" for pair in pairs)).encode() for side in (0, 1))
    paths[0].write_bytes(source)
    paths[1].write_bytes(gzip.compress(target, compresslevel=1))
    paths[2].write_bytes("".join(f"{s}\t{t}\r\n" for s, t in pairs).encode())
    assert texts(read_pairs(Sides(source=str(paths[0]), target=str(paths[1])))) == pairs
    assert texts(read_pairs(str(paths[2]))) == pairs


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\r"])
def test_a_sign_that_some_call_the_end_of_a_line_is_part_of_it(file: File, sign: str) -> None:
    sides = Sides(source=file("a.en", [f"a{sign}dog", "cat"]), target=file("a.de", ["Hund", f"Kat{sign}ze"]))
    assert texts(read_pairs(sides)) == [(f"a{sign}dog", "Hund"), ("cat", f"Kat{sign}ze")]


def test_a_last_line_without_its_end_is_a_line(file: File) -> None:
    assert texts(read_pairs(Sides(source=file("a", "x\ny"), target=file("b", "1\n2\n")))) == [("x", "1"), ("y", "2")]


def test_lines_that_are_empty_on_both_sides_are_passed_over_and_counted(file: File) -> None:
    found = read_pairs(Sides(source=file("a", "x\n\n  \ny\n"), target=file("b", "1\n\n\n2\n")))
    assert texts(found) == [("x", "1"), ("y", "2")]
    assert [pair.line for pair in found] == [1, 4]


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(("source", "target"), [("x\ny\n", "1\n"), ("x\n", "1\n2\n"), ("x\n", "1\n\n")])
def test_unequal_line_counts_are_named_with_both_files(file: File, source: str, target: str) -> None:
    sides = Sides(source=file("a.en", source), target=file("a.de", target))
    counts = source.count("\n"), target.count("\n")
    assert refused(sides).startswith(f"{sides.source} has {counts[0]} lines and {sides.target} has {counts[1]}; ")


@pytest.mark.parametrize("content", ["", "\n", " \n\t\n"])
@pytest.mark.parametrize("name", ["a.en", "a.en.gz"])
def test_an_empty_file_is_named(file: File, content: str, name: str) -> None:
    sides = Sides(source=file(name, content), target=file("a.de", TARGET))
    assert refused(sides) == f"{sides.source} is empty; it needs at least one line"


@pytest.mark.parametrize("name", ["a.de", "a.de.gz"])
def test_bytes_that_are_not_utf_8_are_named_with_their_line(file: File, name: str) -> None:
    sides = Sides(source=file("a.en", SOURCE), target=file(name, b"eins\nzwei\xfc\ndrei\n"))
    assert refused(sides).startswith(f"{sides.target}, line 2: not UTF-8, most likely latin-1; ")


@pytest.mark.parametrize("kept", [1, 9, 30, -1])
def test_a_gzipped_file_that_was_cut_short_is_named(file: File, tmp_path: Path, kept: int) -> None:
    path = file("a.en.gz", SOURCE * 20)
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[:kept] if kept > 1 else whole[:-1])
    line = refused(Sides(source=path, target=file("a.de", TARGET * 20)))
    assert line.startswith(f"{path} is gzipped but not whole: ") and line.endswith("; copy or compress it again")


def test_a_gzipped_file_with_something_behind_it_is_named(file: File) -> None:
    path = file("a.en", gzip.compress(b"x\n") + b"more")
    assert refused(Sides(source=path, target=file("a.de", "1\n"))).startswith(f"{path} is gzipped but not whole: ")


@pytest.mark.parametrize(("side", "name"), [(0, "source"), (1, "target")])
def test_a_side_that_is_empty_is_named_with_its_line(file: File, side: int, name: str) -> None:
    contents = [["x", "y", "z"], ["1", "2", "3"]]
    contents[side][1] = "  "
    sides = Sides(source=file("a.en", contents[0]), target=file("a.de", contents[1]))
    path = (sides.source, sides.target)[side]
    assert refused(sides) == f"{path}, line 2: the {name} is empty; fill it or drop the line"


@pytest.mark.parametrize(("line", "count"), [("x", "one field"), ("x\ty\tz", "3 fields"), ("\tx\t", "3 fields")])
def test_a_line_that_has_not_two_fields_is_named(file: File, line: str, count: str) -> None:
    path = file("a.tsv", ["a\tb", "", line])
    cure = "write source, a tab and target, or name two columns, as data.source=1 data.target=2"
    assert refused(path) == f"{path}, line 3: {count}, not two; {cure}"


def test_a_folder_and_a_file_that_is_not_there_are_named(tmp_path: Path) -> None:
    assert refused(str(tmp_path)) == f"{tmp_path} is a folder; name a file in it"
    assert refused(str(tmp_path / "no.tsv")) == f"{tmp_path / 'no.tsv'} does not exist; check the path"


# ---------------------------------------------------------------------- alignments


def sides(file: File, links: object, name: str = "a.links") -> Sides:
    return Sides(source=file("a.en", SOURCE), target=file("a.de", TARGET), alignment=file(name, links))


@pytest.mark.parametrize("name", ["a.links", "a.links.gz"])
def test_alignments_stand_line_by_line_beside_their_pairs(file: File, name: str) -> None:
    where = sides(file, LINKS, name)
    found = read_pairs(where)
    assert [pair.links for pair in found] == pharaoh.read_links(str(where.alignment))
    assert texts(found) == list(zip(SOURCE, TARGET, strict=True))


def test_pairs_without_alignments_have_no_links(file: File) -> None:
    found = read_pairs(Sides(source=file("a.en", SOURCE), target=file("a.de", TARGET)))
    assert [pair.links for pair in found] == [None] * 3


def test_alignments_keep_to_their_lines_where_pairs_are_passed_over(file: File) -> None:
    where = Sides(source=file("a", "x\n\ny z\n"), target=file("b", "1\n\n2\n"), alignment=file("c", "0-0\n\n1-0\n"))
    assert [pair.links.sure for pair in read_pairs(where) if pair.links] == [{(0, 0)}, {(1, 0)}]


@pytest.mark.parametrize("links", [LINKS[:2], [*LINKS, "0-0"], [*LINKS, "0-0", ""]])
def test_alignments_for_another_number_of_lines_are_named(file: File, links: list[str]) -> None:
    where = sides(file, links)
    assert refused(where).startswith(f"{where.alignment} has {len(links)} lines and {where.source} has 3; ")


def test_a_link_to_a_word_that_is_not_there_is_named_with_its_line(file: File) -> None:
    where = sides(file, ["0-0", "0-0 1-2", ""])
    assert refused(where).startswith(
        f"{where.alignment}, line 2: 1-2, counted from 0, goes to target word 2, and there"
    )


def test_what_is_no_link_is_named_with_its_line(file: File) -> None:
    where = sides(file, ["0-0", "0-0 x", ""])
    assert refused(where).startswith(f"{where.alignment}, line 2: 'x' is no link; ")


def test_lines_are_the_same_however_they_are_packed(file: File) -> None:
    content = "\ufeffa\u2028b\r\n\x0bc\n\nd"
    assert (
        line_files.lines(file("plain", content))
        == line_files.lines(file("packed.gz", content))
        == ["a\u2028b", "\x0bc", "", "d"]
    )
