"""Sentences with a class are read from whatever people keep them in, and what is wrong is named with its line."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from heedful.data.formats.labelled_text import Sentence, read_sentences
from heedful.data.readers.labelled_texts import SST, LabelledTexts
from heedful.errors import Refusal

ROWS = [("a fine film", "good"), ("a dull, long film", "bad"), ("neither", "none")]


def texts(found: list[Sentence]) -> list[tuple[str, str]]:
    return [(one.texts[0], one.label) for one in found]


@pytest.mark.parametrize("headed", [True, False])
@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "tsv.gz"])
def test_every_layout_gives_the_same_sentences(tmp_path: Path, kind: str, headed: bool) -> None:
    quote, sign = ('"', ",") if kind == "csv" else ("", "\t")
    lines = [f"{quote}{text}{quote}{sign}{label}" for text, label in ROWS]
    if kind == "jsonl":
        lines = [json.dumps({"label": label, "sentence": text, "id": 3}) for text, label in ROWS]
    elif headed:  # names of columns say which is which, wherever they stand
        lines = [f"id{sign}Label{sign}text"] + [f"7{sign}{label}{sign}{quote}{text}{quote}" for text, label in ROWS]
    path = tmp_path / f"a.{kind}"
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    assert texts(read_sentences(str(path))) == ROWS


def test_pairs_of_sentences_have_a_class_together(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("it rains\tit is wet\tentailed\nit rains\tit is dry\tnot\n")
    (tmp_path / "b.jsonl").write_text('{"premise": "it rains", "hypothesis": "it is wet", "label": 1}\n')
    pairs = [("it rains", "it is wet"), ("it rains", "it is dry")]
    assert [one.texts for one in read_sentences(str(tmp_path / "a.tsv"))] == pairs
    (tmp_path / "c.tsv").write_text(
        "text\ttext\tnot\na text\ta text\tnot\n"
    )  # names of columns, but for that of classes
    assert [one.texts for one in read_sentences(str(tmp_path / "c.tsv"))] == [("text", "text"), ("a text", "a text")]
    (one,) = read_sentences(str(tmp_path / "b.jsonl"))
    assert (one.texts, one.label) == (("it rains", "it is wet"), "1")


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_a_question_and_a_sentence_are_a_pair_in_the_order_of_their_columns(tmp_path: Path, kind: str) -> None:
    sign = "," if kind == "csv" else "\t"
    rows = [["index", "question", "sentence", "label"], ["0", "who sat ?", "a cat sat", "entailment"]]
    text = json.dumps(dict(zip(*rows, strict=True))) if kind == "jsonl" else "\n".join(map(sign.join, rows))
    (tmp_path / f"a.{kind}").write_text(text)
    (one,) = read_sentences(str(tmp_path / f"a.{kind}"))
    assert (one.texts, one.label) == (("who sat ?", "a cat sat"), "entailment")


def test_each_task_has_as_many_texts_as_its_first_sample(tmp_path: Path) -> None:
    rows = [{"text": "a", "task": "mood", "label": 1}, {"text": "a", "pair": "b", "task": "same", "label": 0}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows * 2)))
    assert [len(one.texts) for one in read_sentences(str(tmp_path / "a.jsonl"))] == [1, 2, 1, 2]


def test_a_rare_class_of_one_file_is_learned_wherever_it_would_have_been(tmp_path: Path) -> None:
    rows = [f"text {at}\t{'good' if at % 2 else 'bad'}\n" for at in range(100)]
    for at in range(12):
        (tmp_path / "a.tsv").write_text("".join([*rows, f"something else {at}\trare\n"]))
        splits = LabelledTexts(name=str(tmp_path / "a.tsv")).read(0)
        assert "rare" in {one.label for one in splits.train}
        assert "rare" not in {one.label for one in (*splits.valid, *splits.test)}


@pytest.mark.parametrize("given", [{"name": "a.tsv"}, {"train": "a.tsv"}])
def test_where_each_text_has_a_class_of_its_own_nothing_is_left_to_choose_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text("".join(f"text number {at}\tclass{at}\n" for at in range(100)))
    said = r"(a\.tsv|data\.train) has too few texts of each class to hold some out; add more, or give data\.train"
    with pytest.raises(Refusal, match=said):
        LabelledTexts(**given).read(0)


def test_a_text_in_quotes_is_told_by_its_first_line_and_one_without_an_end_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\n\n"a ""fine""\nlong\nfilm",good\n"dull",bad\n')
    found = read_sentences(str(path))
    assert [(one.line, one.texts) for one in found] == [(3, ('a "fine"\nlong\nfilm',)), (6, ("dull",))]
    for rest in ("no end,good\nanother,bad\n", 'no end,good\n"another",bad\n'):
        path.write_text(f'"fine",good\n"dull\nfilm",bad\n"{rest}')
        with pytest.raises(Refusal, match=r"a\.csv, line 4: a quote is opened and not closed; close it"):
            read_sentences(str(path))
    path.write_text('"fine",good\n"dull" film,bad\n')
    with pytest.raises(Refusal, match=r"a\.csv, line 2: cannot be read as CSV: .*; mend or drop it"):
        read_sentences(str(path))


def test_examples_with_a_class_each_have_no_names_of_columns(tmp_path: Path) -> None:
    for text in ("fine\tgood\ndull\tbad\n", "hm\tnone\nfine\tgood\nnice\tgood\n"):
        (tmp_path / "a.tsv").write_text(text)
        assert len(read_sentences(str(tmp_path / "a.tsv"))) == text.count("\n")


def halved(place: Path, **counts: int) -> Path:
    for half, count in counts.items():
        for label in ("neg", "pos"):
            (place / half / label).mkdir(parents=True)
            for at in range(count):
                (place / half / label / f"{at}.txt").write_text(f"{half} {label}\n {at}\n")
    return place


@pytest.mark.parametrize("names", ["train test", "Train Test", "train val", "TRAIN Dev"])
def test_a_folder_for_each_class_may_be_divided_already(tmp_path: Path, names: str) -> None:
    learned, tested = names.split()
    splits = LabelledTexts(name=str(halved(tmp_path, **{learned: 40, tested: 5}))).read(1)
    assert len(splits.test) == 10 and len(splits.train) + len(splits.valid) == 80 and len(splits.valid) > 1
    assert splits.test[0] == Sentence((f"{tested} neg 0",), "neg", str(tmp_path / tested / "neg" / "0.txt"))
    assert len(read_sentences(str(tmp_path / learned))) == 80


def test_folders_of_three_halves_are_taken_as_they_are(tmp_path: Path) -> None:
    splits = LabelledTexts(name=str(halved(tmp_path, Train=4, Valid=3, Test=2))).read(1)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (8, 6, 4)


def test_a_class_of_one_text_is_learned_from_where_halves_leave_some_to_choose_by(tmp_path: Path) -> None:
    halved(tmp_path, train=40, test=5)
    for at in range(12):
        (tmp_path / "train" / f"rare{at}").mkdir()
        (tmp_path / "train" / f"rare{at}" / "0.txt").write_text(f"something else {at}")
    splits = LabelledTexts(name=str(tmp_path)).read(1)
    assert len({one.label for one in splits.train}) == 14


def test_texts_of_every_ending_are_read_and_what_is_passed_over_is_told(tmp_path: Path) -> None:
    halved(tmp_path, reviews=2)
    reviews = tmp_path / "reviews"
    for name in ("mid/a.TXT", "pos/more.md", "pos/table.xls", "neg/.old.txt", "none/notes.doc", "urls.txt"):
        (reviews / name).parent.mkdir(exist_ok=True)
        (reviews / name).write_text(name)
    (reviews / "empty").mkdir()
    with pytest.warns(UserWarning, match="passed over|without texts") as told:
        found = read_sentences(str(reviews))
    assert Counter(one.label for one in found) == {"mid": 1, "neg": 2, "pos": 3}
    assert [str(one.message).removeprefix(f"{reviews}: ") for one in told] == [
        f"files of other kinds are passed over: 2, first {reviews / 'none' / 'notes.doc'}",
        f"texts in no folder of a class are passed over: 1, first {reviews / 'urls.txt'}",
        f"hidden texts are passed over: 1, first {reviews / 'neg' / '.old.txt'}",
        "folders without texts make no class: empty, none",
    ]


def test_the_treebank_is_read_in_three_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sst").mkdir()
    for split, text in (("train", "1 a fine film\n0 bad\n"), ("dev", "1 a chosen one\n"), ("test", "0 a test\n")):
        (tmp_path / "sst" / f"stsa.binary.{split}").write_text(text)
    phrases = {"train": "fine \t1\na test\t0\nbad\t0\n", "dev": "a film\t1\n", "test": "a chosen one\t1\n"}
    for split, text in phrases.items():
        (tmp_path / "sst" / f"glue_phrases.{split}.tsv").write_text(f"sentence\tlabel\n{text}")
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))

    def learned(form: Any) -> list[str]:
        splits = SST(name="sst", form=form).read(1)
        assert {one.label for one in splits.train} == {"negative", "positive"}
        return [one.texts[0] for one in splits.train]

    assert learned("sentences") == ["a fine film", "bad"]
    assert learned("glue") == ["fine", "a test", "bad"]
    assert learned(None) == learned("phrases") == ["a fine film", "bad", "fine", "a film"]  # none that is tested on
    with pytest.raises(Refusal, match="sst: 'tok'"):
        learned("tok")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.tsv", "good film\tgood\nalone\n", "line 2: one field; write a text"),
        ("a.tsv", "a\tb\tc\td\n", "line 1: 4 fields; write a text"),
        ("a.tsv", "text\tlabel\n\tgood\n", "line 2: the text is empty"),
        ("a.csv", "film,\n", "line 1: the class is empty"),
        ("a.csv", "text,label\n", "holds no samples below the names of its columns"),
        ("a.csv", "headline,mood\na,good\nb,bad\nc,good\nd,bad\n", "line 1: headline, mood are names of columns"),
        ("a.csv", "text,text,label\na,b,good\n", "line 1: 2 columns are called text; call one so"),
        ("a.csv", "text\na\nb\n", "line 1: one field; add a column called label"),
        ("a.csv", "label\ngood\n", "line 1: one field; add a column called text"),
        ("a.csv", "a,good\nb\n", "line 2: one field; write a text, a comma and its class"),
        ("a.csv", "text,review,content,label\na,b,c,good\n", "line 1: 3 columns are called as texts are"),
        ("a.jsonl", '{"text": "a", "text2": "b", "pair": "c", "label": 1}', "line 1: 3 columns are called as texts"),
        ("a.tsv", "a\tgood\nb\t\tbad\n", "line 2: the text is empty"),
        ("a.tsv", "a\tgood\n\nb\tc\tbad\n", "line 3: two texts where the others have one; give every line as many"),
        ("a.csv", "a,b,good\nc,bad\n", "line 2: one text where the others have two; give every line as many"),
        (
            "a.jsonl",
            '{"text": "a", "label": 1}\n{"text": "a", "pair": "b", "label": 0}',
            "line 2: two texts where the others have one",
        ),
        ("a.tsv", "\ufeff", "a.tsv is empty"),
        ("a.jsonl", '{"text": 3, "label": "x"}\n', 'line 1: write {"text"'),
        ("a.jsonl", "{nothing\n", "line 1: cannot be read as JSON"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(Refusal) as refused:
        read_sentences(str(tmp_path / name))
    assert said in str(refused.value)
