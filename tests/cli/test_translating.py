"""Translating from the command line: answers in order, the best of them, alignments, pictures, own tokenizers."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from heedful.data.formats import pharaoh
from heedful.pipelines.translation_pipeline import Translating
from heedful.tasks.work import Work
from heedful.training import run
from tests.cli.conftest import Program
from tests.cli.workshop import ENGLISH, INVENTED, LINKS, SMALL, SMALLER

BRIEF = [*SMALL, *SMALLER["translate"]]
ASKED = "A dog runs ."


@pytest.fixture
def answer(workshop: Path, heedful: Program) -> str:
    """What the run in the workshop says to a dog."""
    return heedful("predict", "runs/translate", ASKED).lines[0]


# ---------------------------------------------------------------------- recipes


def test_recipes_give_bleu_as_a_number_and_shares_in_percent(heedful: Program) -> None:
    said = heedful("recipes").out
    rows = {row["name"]: row for row in json.loads(heedful("recipes", "--json").out)}
    assert rows["translate-multi30k"]["expected"]["score"]["bleu"] > 1
    for name, row in rows.items():
        for score, value in ((row["expected"] or {}).get("score") or {}).items():
            shown = f"{value:.2f}" if score in ("bleu", "log_likelihood") else f"{100 * value:.2f} %"
            assert re.search(rf"^  {name} .*\b{score} {shown}, ", said, re.MULTILINE), name


# ---------------------------------------------------------------------- predict


def test_a_file_of_sentences_is_translated_line_by_line_in_order(heedful: Program, workshop: Path) -> None:
    lines = [*ENGLISH[:7], "", ASKED, "   ", *ENGLISH[7:20], ""]
    together = heedful("predict", "runs/translate", stdin="\n".join(lines) + "\n")
    assert (together.status, together.err, len(together.lines)) == (0, "", len(lines))
    for asked, written in zip(lines, together.lines, strict=True):
        assert (written == "") == (not asked.strip())
    alone = [heedful("predict", "runs/translate", asked).lines[0] for asked in (lines[0], ASKED, lines[10])]
    assert alone == [together.lines[0], together.lines[8], together.lines[10]]


def test_the_best_translations_come_with_their_scores(heedful: Program, workshop: Path, answer: str) -> None:
    said = heedful("predict", "runs/translate", ASKED, ENGLISH[0], "--best", "2")
    assert (said.status, len(said.lines)) == (0, 4)
    found = [re.fullmatch(r"(.*)\t(-\d+\.\d{4})", line) for line in said.lines]
    assert all(found) and found[0] is not None and found[0][1] == answer


def test_a_translation_can_be_streamed_and_drawn_by_chance(heedful: Program, workshop: Path) -> None:
    greedy = heedful("predict", "runs/translate", ASKED, "", "--beams", "1")
    assert heedful("predict", "runs/translate", ASKED, "", "--beams", "1", "--stream").out == greedy.out
    drawn = [
        heedful("predict", "runs/translate", ASKED, "--temperature", "2", "--seed", seed).out for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


# ---------------------------------------------------------------------- align


def pairs(count: int) -> list[str]:
    return [f"{source}\t{target}" for source, target in zip(ENGLISH[:count], INVENTED, strict=False)]


def test_align_says_which_words_belong_together_a_line_a_pair(heedful: Program, workshop: Path, answer: str) -> None:
    said = heedful("align", "runs/translate", stdin="\n".join([*pairs(5), ASKED]))
    assert (said.status, said.err, len(said.lines)) == (0, "", 6)
    model, task = run.load_trained(Path("runs/translate"))
    assert isinstance(task, Work) and isinstance(task.pipeline, Translating)
    asked = [(text.split("\t")[0], text.split("\t")[1]) for text in pairs(5)]
    found = list(task.pipeline.align(model, [*asked, (ASKED, None)], task.learned))
    assert said.lines == [pharaoh.write(one.links) for one in found]
    assert heedful("align", "runs/translate", f"{ASKED}\t{answer}").lines == said.lines[5:]


def test_align_measures_the_error_rate_against_what_people_gave(
    heedful: Program, workshop: Path, tmp_path: Path
) -> None:
    gold = tmp_path / "gold"
    gold.write_text("".join(f"{line}\n" for line in LINKS[:9]), encoding="utf-8")
    said = heedful("align", "runs/translate", "--gold", gold, stdin="\n".join(pairs(9)))
    assert said.status == 0 and len(said.lines) == 10
    scores = json.loads(said.lines[-1])
    assert scores.keys() == {"pairs", "precision", "recall", "error_rate"} and scores["pairs"] == 9
    hits = a = s = 0
    for mine, theirs in zip(said.lines[:9], LINKS, strict=False):
        hits += len(set(mine.split()) & set(theirs.split()))
        a, s = a + len(mine.split()), s + len(theirs.split())
    assert scores["error_rate"] == pytest.approx(1 - 2 * hits / (a + s))
    again = tmp_path / "again"
    again.write_text("".join(f"{line}\n" for line in said.lines[:9]), encoding="utf-8")  # it agrees with itself
    same = heedful("align", "runs/translate", "--gold", again, stdin="\n".join(pairs(9)))
    assert json.loads(same.lines[-1])["error_rate"] == 0


@pytest.mark.parametrize(("ending", "begin"), [("html", b"<!doctype html"), ("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_align_draws_what_it_says(heedful: Program, workshop: Path, tmp_path: Path, ending: str, begin: bytes) -> None:
    out = tmp_path / f"words.{ending}"
    said = heedful("align", "runs/translate", *pairs(2), "--out", out)
    assert (said.status, len(said.lines)) == (0, 2)
    assert out.read_bytes().lower().startswith(begin.lower())


# ---------------------------------------------------------------------- look


def islands(path: Path) -> dict[str, Any]:
    """What a page draws, by kind."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r'<div class="(\w+)"><script type="application/json">(.+?)</script>', text, re.DOTALL)
    return {kind: json.loads(data) for kind, data in found}


def test_look_shows_the_words_and_every_layer_of_a_translation(
    heedful: Program, workshop: Path, tmp_path: Path, answer: str
) -> None:
    for ending in ("html", "png", "json"):
        said = heedful("look", "runs/translate", ASKED, "--out", tmp_path / f"dog.{ending}")
        assert (said.status, said.err) == (0, "")
        assert said.lines == [f"{ASKED} → {answer}", str(tmp_path / f"dog.{ending}")]
    assert (tmp_path / "dog.png").read_bytes().startswith(b"\x89PNG")
    first, *rest = json.loads((tmp_path / "dog.json").read_text(encoding="utf-8"))["maps"]
    assert (first["path"], first["columns"], first["rows"]) == ("alignment", ASKED.split(), answer.split())
    assert len(first["weights"]) == 1 and len(rest) == 6
    drawn = islands(tmp_path / "dog.html")
    (example,), (words,) = drawn["viewer"]["examples"], drawn["aligned"]["examples"]
    assert [shown["path"] for shown in example["maps"]] == [first["path"], *(one["path"] for one in rest)]
    assert (words["source"], words["target"]) == (ASKED.split(), answer.split())
    links = heedful("align", "runs/translate", ASKED).lines[0].split()
    assert [f"{s}-{t}" for s, t in words["links"]] == links


def test_look_at_the_words_alone(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    out = tmp_path / "dog.json"
    assert heedful("look", "runs/translate", ASKED, "--out", out, "--layer", "alignment").status == 0
    assert [one["path"] for one in json.loads(out.read_text(encoding="utf-8"))["maps"]] == ["alignment"]


# ---------------------------------------------------------------------- eval


def test_eval_counts_words_as_training_did(heedful: Program, tmp_path: Path) -> None:
    """Data in files of their own, and BLEU by signs: neither is the default."""
    data = ["data.bleu=char"]
    for part, lines in {"train": slice(100), "valid": slice(100, 108), "test": slice(108, 120)}.items():
        path = tmp_path / f"{part}.tsv"
        path.write_text("".join(f"{s}\t{t}\n" for s, t in zip(ENGLISH[lines], INVENTED[lines], strict=True)))
        data.append(f"data.{part}={path}")
    out = tmp_path / "run"
    longer = ["training.steps=30", "decoding.max_new_tokens=30"]
    brief = [change for change in BRIEF if not change.startswith(("data.samples", "data.held_out"))]
    assert heedful("train", "translate", *brief, *data, *longer, "--out", out).status == 0
    result = json.loads((out / "result.json").read_text())["scores"]
    assert result["bleu"] > 0
    said = json.loads(heedful("eval", out).out)
    assert {name: said[name] for name in result} == pytest.approx(result)
    other = json.loads(heedful("eval", out, f"data.test={tmp_path / 'test.tsv'}").out)
    assert other["bleu"] == pytest.approx(result["bleu"])
    assert json.loads(heedful("eval", out, "data.bleu=13a").out)["bleu"] != pytest.approx(result["bleu"])


def test_eval_takes_two_files_gzipped_or_plain(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    (tmp_path / "test.en.gz").write_bytes(gzip.compress("\n".join(ENGLISH[:7]).encode()))
    (tmp_path / "test.xx").write_text("\n".join(INVENTED[:7]), encoding="utf-8")
    sides = [f"data.test.source={tmp_path / 'test.en.gz'}", f"data.test.target={tmp_path / 'test.xx'}"]
    for folder in ("runs/translate", "runs/translate/model"):
        assert json.loads(heedful("eval", folder, *sides).out)["samples"] == 7


# ---------------------------------------------------------------------- tokenizers


def test_a_tokenizer_that_was_trained_here_is_the_one_a_model_keeps(
    heedful: Program, workshop: Path, tmp_path: Path
) -> None:
    made = heedful("tokenizer", "train", "train.en", "train.xx", "--size", "300", "--out", tmp_path / "mine.json")
    assert made.status == 0
    words = ["data=train.tsv", f"data.tokenizer={tmp_path / 'mine.json'}", "--out", tmp_path / "run"]
    assert heedful("train", "translate", *BRIEF[3:5], BRIEF[6], *words).status == 0
    kept = tmp_path / "run" / "model" / "tokenizer.json"
    said = [heedful("tokenizer", "encode", path, ASKED, "--json").out for path in (tmp_path / "mine.json", kept)]
    assert said[0] == said[1]
    assert json.loads((tmp_path / "run" / "model" / "spec.json").read_text())["vocab"] == 300


@pytest.mark.parametrize("words", [["data=train.tsv"], ["data.train.source=train.en", "data.train.target=train.xx"]])
def test_own_files_are_cut_into_the_sub_words_of_the_recipe(
    heedful: Program, workshop: Path, tmp_path: Path, words: list[str]
) -> None:
    small = ["model.width=16", "model.heads=2", "training.steps=1", "decoding.max_new_tokens=3"]
    assert heedful("train", "translate", *words, *small, "--out", tmp_path / "run").status == 0
    begun = (tmp_path / "run" / "run.yaml").read_text(encoding="utf-8")
    assert "tokenizer: bpe(size=8000)" in begun
    vocab = json.loads((tmp_path / "run" / "model" / "spec.json").read_text())["vocab"]
    assert 300 < vocab < 8000  # as many as so little text has
