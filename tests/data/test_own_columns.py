"""A user's own tables: columns by name, encodings, files for some of the splits, and how much of one is held out."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import feather, parquet

from heedful.data.formats.labelled_text import Sentence, read_sentences
from heedful.data.formats.parallel_text import read_pairs
from heedful.data.line_files import lines, read_as
from heedful.data.near_duplicates import MOST, Cut
from heedful.data.splits import divide_samples
from heedful.data.text_encoding import encoding_of, likeliest
from heedful.errors import Refusal
from heedful.tasks import task_of
from heedful.training.spec import recipes

ROWS = [{"id": n, "question": f"où est le numéro {n} ?", "kind": ("place", "name")[n % 2]} for n in range(60)]


def write_tables(folder: Path) -> list[Path]:
    """The same rows as every kind of table."""
    head = [[*ROWS[0]], *([str(value) for value in row.values()] for row in ROWS)]
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(head)
    (folder / "rows.tsv").write_text("".join("\t".join(row) + "\n" for row in head), encoding="utf-8")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    for name in ("rows.csv", "rows.tsv", "rows.jsonl"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    table = pyarrow.Table.from_pylist(ROWS)
    parquet.write_table(table, folder / "rows.parquet")
    feather.write_feather(table, str(folder / "rows.feather"), compression="uncompressed")
    save_to_disk(folder / "saved", ROWS)
    return sorted(folder.iterdir())


def save_to_disk(folder: Path, rows: list[dict[str, object]]) -> None:
    """A folder as `Dataset.save_to_disk` leaves it, its classes told by their numbers."""
    folder.mkdir(parents=True)
    names = sorted({str(row["kind"]) for row in rows})
    table = pyarrow.Table.from_pylist([row | {"kind": names.index(str(row["kind"]))} for row in rows])
    path = str(folder / "data-00000-of-00001.arrow")
    with pyarrow.OSFile(path, "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    (folder / "dataset_info.json").write_text(
        json.dumps({"features": {"kind": {"names": names, "_type": "ClassLabel"}}})
    )


def seen(found: list[Sentence]) -> list[tuple[str, str]]:
    return [(*one.texts, one.label) for one in found]


def test_columns_are_read_by_their_names_from_every_kind_of_table(tmp_path):
    wanted = [(str(row["question"]), str(row["kind"])) for row in ROWS]
    places = write_tables(tmp_path)
    assert len(places) == 9
    for place in places:
        assert seen(read_sentences(str(place), ("question", "kind"))) == wanted, place
        pairs = read_pairs(str(place), ("question", "kind"))
        assert [(pair.source, pair.target) for pair in pairs] == wanted, place


def test_columns_of_a_file_without_names_are_told_by_their_numbers(tmp_path):
    (tmp_path / "three.tsv").write_text("Go.\tVa !\tCC-BY\nRun!\tCours !\tCC-BY\n", encoding="utf-8")
    found = read_pairs(str(tmp_path / "three.tsv"), (1, 2))
    assert [(pair.source, pair.target) for pair in found] == [("Go.", "Va !"), ("Run!", "Cours !")]
    with pytest.raises(Refusal, match=r"3 fields, not two; .*data\.source=1 data\.target=2"):
        read_pairs(str(tmp_path / "three.tsv"))


def test_an_inner_column_is_read_by_its_path_and_one_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps({"translation": {"en": "Go.", "fr": "Va !"}}) + "\n")
    [pair] = read_pairs(str(tmp_path / "t.jsonl"), ("translation.en", "translation.fr"))
    assert (pair.source, pair.target) == ("Go.", "Va !")
    write_tables(tmp_path)
    with pytest.raises(Refusal, match=r"no column questions; did you mean 'question'\? there are: id, question, kind"):
        read_sentences(str(tmp_path / "rows.csv"), ("questions", "kind"))


def test_a_saved_set_leads_out_of_its_folder_nowhere(tmp_path):
    save_to_disk(tmp_path / "saved", ROWS)
    (tmp_path / "saved" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../secret.arrow"}]}))
    with pytest.raises(Refusal, match="names no files of this folder"):
        read_sentences(str(tmp_path / "saved"), ("question", "kind"))


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "déjà vu à Orléans, où est-ce ?"),
        ("cp1252", "the “quoted” word, café"),
        (
            "cp1251",
            "\u0413\u0434\u0435 \u043d\u0430\u0445\u043e\u0434\u0438\u0442\u0441\u044f",
        ),
        ("utf-16", "any text at all"),
        ("shift_jis", "これはテストの文章です。東京はどこですか"),
    ],
)
def test_the_refusal_of_what_is_not_utf8_names_the_likeliest_encoding_which_then_reads_it(tmp_path, encoding, text):
    path = tmp_path / "text.txt"
    path.write_bytes(f"{text}\n{text}".encode(encoding))
    assert likeliest(path.read_bytes()) == encoding
    with pytest.raises(Refusal, match=rf"not UTF-8, most likely {encoding}; give data\.encoding={encoding}"):
        lines(path)
    with read_as(encoding_of(encoding)):
        assert lines(path) == [text, text]


def opened(recipe: str, *keys: str):
    run = recipes.resolve(recipe, keys)
    return task_of(run.task).open(run.data, run.seed)[1]


def test_a_latin1_file_to_learn_from_and_one_to_test_on_suffice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("train", ROWS[:50]), ("test", ROWS[50:])):
        text = "".join(
            f"{row['kind']},{row['question']}\n" for row in [{"kind": "kind", "question": "question"}, *rows]
        )
        Path(f"{name}.csv").write_bytes(text.encode("latin-1"))
    keys = ["data.train=train.csv", "data.test=test.csv", "data.text=question", "data.label=kind"]
    with pytest.raises(Refusal, match=r"train.csv, line 2: not UTF-8, most likely latin-1"):
        opened("classify", *keys)
    splits = opened("classify", *keys, "data.encoding=latin-1")
    assert len(splits.train) + len(splits.valid) == 50 and len(splits.test) == 10
    assert 1 <= len(splits.valid) < 15


def test_a_set_that_was_saved_with_its_splits_is_taken_as_it_is(tmp_path):
    for name, rows in (("train", ROWS[:40]), ("validation", ROWS[40:50]), ("test", ROWS[50:])):
        save_to_disk(tmp_path / "set" / name, rows)
    (tmp_path / "set" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation", "test"]}))
    splits = opened("classify", f"data={tmp_path / 'set'}", "data.text=question", "data.label=kind")
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [40, 10, 10]


def test_of_many_samples_a_thousand_are_there_to_choose_by_unless_more_are_asked_for():
    samples = [f"{at // 3} {at}" for at in range(30_000)]  # three of each key
    made = divide_samples(samples, lambda one: one.split()[0], "a file")
    assert MOST - 3 < len(made.valid) <= MOST and len(made.test) > 2_500 and len(made.train) > 25_000
    keys = [{one.split()[0] for one in part} for part in (made.train, made.valid, made.test)]
    assert not keys[0] & keys[1] and not keys[1] & keys[2] and not keys[0] & keys[2]
    assert sorted([*made.train, *made.valid, *made.test]) == sorted(samples)
    more = divide_samples(samples, lambda one: one.split()[0], "a file", Cut(held_out=6_000))
    assert 5_997 <= len(more.valid) <= 6_000 and 5_997 <= len(more.test) <= 6_000
    few = divide_samples(samples, lambda one: one.split()[0], "a file", Cut(held_out=99))
    assert len(few.valid) <= 99 and len(few.test) <= 99 and {*few.valid} <= {*made.valid}


def test_what_is_chosen_by_was_never_learned_from_when_the_file_was_shorter():
    samples = [str(at) for at in range(20_000)]
    before, after = (divide_samples(samples[:count], str, "a file") for count in (12_000, 20_000))
    assert not {*before.train} & {*after.valid} and not {*before.train} & {*after.test}


def test_what_has_a_file_of_its_own_is_not_cut_from_another():
    samples = [str(at) for at in range(400)]
    made = divide_samples(samples, str, "a file", Cut(test=False))
    assert not made.test and len(made.train) + len(made.valid) == 400 and len(made.valid) < 80


def test_how_much_of_a_recipes_own_set_is_held_out_says_nothing_of_a_file(tmp_path):
    write_tables(tmp_path)
    keys = [f"data={tmp_path / 'rows.csv'}", "data.text=question", "data.label=kind"]
    assert recipes.resolve("classify", keys).data.held_out is None
    assert recipes.resolve("classify", [*keys, "data.held_out=7"]).data.held_out == 7
    splits = opened("classify", *keys, "data.held_out=7")
    assert (len(splits.valid), len(splits.test)) == (7, 7)
    with pytest.raises(Refusal, match="held_out"):
        recipes.resolve("gpt-text", [f"data={tmp_path / 'rows.csv'}", "data.held_out=7"])


def test_a_long_file_in_another_encoding_is_read_in_parts(tmp_path, monkeypatch):
    from heedful.data import texts_on_disk

    monkeypatch.setattr(texts_on_disk, "HELD", 1_000)
    text = "où çà ?\td'où\n" * 500
    (tmp_path / "long.tsv").write_bytes(text.encode("latin-1"))
    with read_as("latin-1"):
        pairs = read_pairs(str(tmp_path / "long.tsv"))
    assert np.size(pairs.places) == 500 and (pairs[499].source, pairs[499].target) == ("où çà ?", "d'où")
