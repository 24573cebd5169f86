"""Whole files are asked and scored: columns by name, folders of odd images, every sample, and what cannot be read."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.results import Result, Unread
from tests.cli.conftest import Program

SETS = ["0.1,0.2; 0.3,0.4", "1,2"]


def rows(path: Path, between: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=between))


def test_the_likeliest_classes_come_with_their_chances(heedful: Program, workshop: Path) -> None:
    answer = heedful("predict", "runs/sets", *SETS, "--best", 3)
    told = [line.split("\t") for line in answer.lines]
    chances = [float(chance) for _, chance in told]
    assert answer.status == 0 and len(told) == 6 and chances[:3] == sorted(chances[:3], reverse=True)
    assert [told[0][0], told[3][0]] == heedful("predict", "runs/sets", *SETS).lines
    one = Result.read(json.loads(heedful("predict", "runs/sets", SETS[0], "--json").out))
    assert sum(chance for _, chance in one.chances) == pytest.approx(1) and f"{one.chance:.4f}" == told[0][1]


def test_tags_come_with_their_entities_and_vectors_have_no_best(heedful: Program, workshop: Path) -> None:
    text = "the cat  sat"
    lines = heedful("predict", "encoders/tags", text, "--best", 2, "--json").lines
    one, two = (Result.read(json.loads(line)) for line in lines)
    assert one.chance > two.chance and one.tags != two.tags and one.words == ("the", "cat", "sat")
    refused = heedful("predict", "encoders/states", text, "--best", 2)
    assert refused.status == 2 and "this model's is a vector; leave it out" in refused.err


def test_columns_are_read_by_name_and_answers_stand_beside_them(
    heedful: Program, workshop: Path, tmp_path: Path
) -> None:
    text = 'id,Vectors,answer\n1,"0.1,0.2; 0.3,0.4",x\n2,"1,2\n",y\n3,,z\n4\n'
    (tmp_path / "in.csv").write_text(text)
    out = tmp_path / "out.csv"
    said = heedful("predict", "runs/sets", "--in", tmp_path / "in.csv", "--columns", "vectors", "--out", out)
    made = rows(out)
    assert said.status == 1 and said.out == "" and "2 of 4 inputs could not be read; the others are" in said.err
    assert "in.csv, line 5: the input is empty" in said.err and "in.csv, line 6: 1 fields, and there are 3" in said.err
    assert [row["predicted_answer"] for row in made] == [*heedful("predict", "runs/sets", *SETS).lines, "", ""]
    assert [row["answer"] for row in made] == ["x", "y", "z", ""] and made[1]["Vectors"] == "1,2\n"
    assert 0 < float(made[0]["chance"]) <= 1 and made[2]["chance"] == ""
    by_number = heedful("predict", "runs/sets", "--in", tmp_path / "in.csv", "--columns", "2")
    assert by_number.status == 1 and by_number.lines[1:3] == [row["predicted_answer"] for row in made[:2]]


def test_objects_come_back_with_their_typed_answers(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    lines = ['{"input": [[0.1, 0.2], [0.3, 0.4]], "id": 1}', "{broken", '{"input": "1,2"}', '{"id": 3}', "[1]"]
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    said = heedful("predict", "runs/sets", "--in", tmp_path / "in.jsonl.gz", "--out", tmp_path / "out.jsonl")
    made = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    answers = [Result.read(one.pop("answer")) for one in made]
    assert said.status == 1 and made[0] == {"input": [[0.1, 0.2], [0.3, 0.4]], "id": 1}
    assert [isinstance(one, Unread) for one in answers] == [False, True, False, True, True]
    assert [answers[0].plain(), answers[2].plain()] == heedful("predict", "runs/sets", *SETS).lines


def test_lines_of_another_encoding_are_read_where_it_is_named(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes("the café sat\nthe cat sat\n".encode("latin-1"))
    refused = heedful("predict", "encoders/tags", "--in", tmp_path / "in.txt")
    assert refused.status == 2 and "line 1: not UTF-8, most likely latin-1; give --encoding latin-1" in refused.err
    said = heedful("predict", "encoders/tags", "--in", tmp_path / "in.txt", "--encoding", "latin-1", "--json")
    assert [Result.read(json.loads(line)).words[1] for line in said.lines] == ["café", "cat"]
    assert heedful("predict", "encoders/tags", "--in", tmp_path / "in.txt", "--encoding", "klingon").status == 2


def test_writers_answer_a_file_and_give_scores(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("source\tkind\n123\ta\n\tb\n12345\tc\n")
    words = ["--in", tmp_path / "in.tsv", "--out", tmp_path / "out.tsv", "--beams", 3, "--best", 2]
    assert heedful("predict", "runs/reverse", *words).status == 1
    made = rows(tmp_path / "out.tsv", "\t")
    assert list(made[0]) == ["source", "kind", "answer", "score", "answer_2", "score_2"]
    assert float(made[0]["score"]) >= float(made[0]["score_2"]) and made[1]["answer"] == ""
    asked = heedful("predict", "runs/reverse", "123", "12345", "--beams", 3, "--best", 2)
    lines = [line.split("\t")[0] for line in asked.lines]
    assert [made[0]["answer"], made[0]["answer_2"], made[2]["answer"], made[2]["answer_2"]] == lines


def test_a_folder_of_odd_images_is_answered_but_for_those_that_are_none(
    heedful: Program, workshop: Path, tmp_path: Path
) -> None:
    image = Image.open("photos/class0/0.png")
    (odd := tmp_path / "odd").mkdir()
    for mode, name in (("P", "a_palette.png"), ("CMYK", "b_cmyk.jpg"), ("LA", "c_clear.png"), ("1", "d_bits.png")):
        image.convert(mode).save(odd / name)
    image.resize((1, 1)).save(odd / "e_one.png")
    np.save(odd / "f.npy", np.asarray(image))
    (odd / "g_cut.png").write_bytes(Path("photos/class0/0.png").read_bytes()[:300])
    (odd / "h_none.jpg").write_bytes(b"")
    (odd / "notes.txt").write_text("x")
    said = heedful("predict", "runs/vit", "--in", odd, "--out", tmp_path / "out.csv")
    made = rows(tmp_path / "out.csv")
    assert said.status == 1 and "g_cut.png cannot be read" in said.err and "passed over: .txt 1" in said.err
    assert [bool(row["answer"]) for row in made] == [True] * 6 + [False] * 2
    assert [row["file"] for row in made] == sorted(path.name for path in odd.iterdir() if path.suffix != ".txt")
    alone = heedful("predict", "runs/vit", odd / "b_cmyk.jpg").out.strip()
    assert made[1]["answer"] == alone
    (tmp_path / "list.csv").write_text("path\nodd/b_cmyk.jpg\n")
    assert heedful("predict", "runs/vit", "--in", tmp_path / "list.csv").out.strip() == alone
    assert heedful("predict", "runs/vit", "--in", odd / "h_none.jpg").status == 2


REFUSED = [
    (["--in", "photos"], "photos is a folder, and an input is vectors"),
    (["--in", "nowhere.csv"], "nowhere.csv does not exist"),
    (["--in", "few.tsv", "1,2"], "are both given; leave one of them out"),
    (["1,2", "--columns", "a"], "--columns is of a file; give --in FILE too"),
    (["--in", "two.csv"], "two.csv has the columns 1, 2, and none is called input or"),
    (["--in", "two.csv", "--columns", "3"], "--columns: two.csv has no column '3'; its columns are: 1, 2"),
    (["--in", "pairs.txt", "--columns", "a"], "pairs.txt has lines and no columns"),
    (["1,2", "--out", "no/where.csv"], "there is no folder no"),
    (["--in", "empty.csv"], "empty.csv is empty"),
    (["--in", "head.csv"], "head.csv holds no rows below the names of its columns"),
    (["1,2", "--stream", "--json"], "leave one of them out"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=lambda value: value if isinstance(value, str) else None)
def test_what_cannot_be_asked_is_refused_and_the_cure_is_named(
    heedful: Program, workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    for name, text in {
        "two.csv": "a b,1\nc d,2\n",
        "empty.csv": "",
        "head.csv": "input\n",
        "pairs.txt": "1,2\n",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "few.tsv").write_text("input\n1,2\n")
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path)
    answer = heedful("predict", workshop / "runs" / "sets", *words)
    assert (answer.status, answer.out) == (2, "") and said in answer.err and answer.err.count("\n") == 1


def test_all_of_a_file_is_scored_class_by_class(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    lines = [f"{at},{1 + at % 4},{at % 7},{at % 5}" for at in range(60)]
    (tmp_path / "sets.csv").write_text("\n".join(lines))
    said = heedful("eval", "runs/sets", tmp_path / "sets.csv")
    told = json.loads(said.lines[-1])
    assert (said.status, told["samples"], told["file"]) == (0, 60, str(tmp_path / "sets.csv"))
    assert f"on 60 samples of {tmp_path / 'sets.csv'}" in said.err and "confusion" not in told
    assert heedful("eval", "runs/sets", f"data={tmp_path / 'sets.csv'}").out.count('"samples": 60')
    whole = json.loads(heedful("eval", "runs/sets", tmp_path / "sets.csv", "--json").out)
    counts = np.array(whole["confusion"]["counts"])
    assert counts.sum(1).tolist() == [15] * 4 and whole["confusion"]["labels"] == ["1", "2", "3", "4"]
    assert counts.trace() / 60 == pytest.approx(told["accuracy"])
    assert [one["count"] for one in whole["classes"].values()] == [15] * 4
    recalls = counts.diagonal() / 15
    assert [one["recall"] for one in whole["classes"].values()] == pytest.approx(recalls)
    told_of_run = json.loads((workshop / "runs" / "sets" / "result.json").read_text())
    assert np.array(told_of_run["confusion"]["counts"]).sum() == 12 and told_of_run["classes"]


def test_a_folder_of_classes_is_scored_whole_or_by_its_part(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    for half, count in (("train", 3), ("val", 2)):
        for label in ("circle", "ring"):
            (tmp_path / half / label).mkdir(parents=True)
            for at in range(count):
                colour = (9 * at + 5 * count, at, 200 * (label == "ring"))
                Image.new("RGB", (9, 9), colour).save(tmp_path / half / label / f"{at}.png")
    assert json.loads(heedful("eval", "runs/vit", tmp_path).lines[-1])["samples"] == 4
    assert json.loads(heedful("eval", "runs/vit", tmp_path / "train").lines[-1])["samples"] == 6
