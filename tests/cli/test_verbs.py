"""Every verb on its good path, and what people naturally try."""

import hashlib
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

import heedful as library
from heedful.attention import Everything
from heedful.cli import app
from heedful.data.public import catalogue
from heedful.decoding import Answer
from heedful.models.text.transformer import END, PAD
from heedful.tasks import TASKS
from heedful.training.loop import Loop
from heedful.training.spec import recipes
from tests.cli.conftest import Program
from tests.cli.workshop import RECIPES, SMALL, listing

ROOT = Path(__file__).parents[2]
ASKED = {"reverse": "12ab", "sort": "ba21", "sets": "-0.5,0.2; 0.3,-.4; 1,1", "series": "10,11; 10.5,11; -11,12"}
ASKED |= {"translate": "A dog runs ."}
SCORES = {"pairs": {"exact", "tokens"}, "sets": {"accuracy"}, "series": {"skill", "mean_absolute_error"}}
SCORES |= {"translation": {"bleu", "chrf", "perplexity"}}


def verbs() -> dict[str, Any]:
    """Every verb with its command: `train`, `data get`."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        found |= {f"{name} {verb}": one for verb, one in inner.items()} or {name: command}
    return found


# ---------------------------------------------------------------------- help


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_heedful_alone_shows_its_help(heedful: Program, words: list[str]) -> None:
    answer = heedful(*words)
    assert (answer.status, answer.err) == (0, "")
    assert "Usage: heedful" in answer.out
    assert all(verb.split()[0] in answer.out for verb in verbs())


def test_a_verb_of_verbs_alone_shows_its_help(heedful: Program) -> None:
    answer = heedful("data")
    assert (answer.status, answer.err) == (0, "")
    assert "list" in answer.out and "get" in answer.out


@pytest.mark.parametrize("verb", verbs())
def test_the_help_of_a_verb_names_every_option_and_argument(
    heedful: Program, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    answer = heedful(*verb.split(), "--help")
    assert (answer.status, answer.err) == (0, "")
    for parameter in verbs()[verb].params:
        named = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar.strip("[].")]
        assert all(name in answer.out for name in named)
        assert parameter.help, f"{verb} says nothing of {parameter.name}"


def test_the_version_is_said(heedful: Program) -> None:
    answer = heedful("--version")
    assert (answer.status, answer.out) == (0, f"heedful {library.__version__}\n")


@pytest.mark.parametrize("words", [[], ["--help"], ["train", "--help"], ["--version"], ["trian"]])
def test_nothing_heavy_is_loaded_before_a_verb_needs_it(words: list[str]) -> None:
    heavy = {"torch", "numpy", "yaml", "matplotlib", "tokenizers", "safetensors", "tensorboard", "rich.progress"}
    heavy |= {"pydantic"} if words in ([], ["--help"]) else set()  # typer itself asks it about the words of a verb
    program = (
        "import sys, heedful.cli\n"
        f"try:\n    heedful.cli.main({words})\nexcept SystemExit:\n    pass\n"
        f"print(sorted({heavy} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


# ---------------------------------------------------------------------- recipes and data


def test_recipes_are_listed_for_people_and_for_programs(heedful: Program) -> None:
    said, rows = heedful("recipes"), json.loads(heedful("recipes", "--json").out)
    assert said.status == 0
    assert [row["name"] for row in rows] == recipes.names()
    lines = {line.split()[0]: line for line in said.lines if line.startswith("  ")}
    assert sorted(lines) == recipes.names()
    for row in rows:
        assert row["about"] in lines[row["name"]] and row["task"] in TASKS


def test_sets_are_listed_for_people_and_for_programs(heedful: Program, workshop: Path) -> None:
    said, rows = heedful("data", "list"), json.loads(heedful("data", "list", "--json").out)
    names = [row["name"] for row in rows]
    assert said.status == 0
    made = {"reverse", "sort", "clouds", "waves", "invented", "captions", "maps", "shapes", "toy"}
    made |= {"opinions", "asked-of-opinions", "mentions", "facts", "news", "smalltalk", "listops", "invented-names"}
    assert made | set(catalogue.PUBLIC) == set(names)
    assert all(re.search(rf"^  {name} ", said.out, re.MULTILINE) for name in names)
    assert all(row.get("made") or row["licence"] for row in rows)


def test_kinds_of_attention_are_listed_for_people_and_for_programs(heedful: Program) -> None:
    said, rows = heedful("attention", "list"), json.loads(heedful("attention", "list", "--json").out)
    header, *lines = said.lines
    assert said.status == 0
    columns = ["name", "kind", "tier", "year", "cost", "causal", "overtakes softmax at T", "paper"]
    assert re.split("  +", header) == columns
    assert [line.split()[0] for line in lines] == [row["name"] for row in rows]
    assert {"softmax", "performer", "window", "alibi", "grouped", "multi_query", "pma", "disagreement", "guided"} <= {
        row["name"] for row in rows
    }
    assert all(row["paper"] in line for row, line in zip(rows, lines, strict=True))
    for name in ("kind", "tier", "year", "cost", "paper"):
        at = header.index(name)
        assert all(line[at:].startswith(str(row[name])) for row, line in zip(rows, lines, strict=True)), name


@pytest.mark.parametrize("name", ["grouped", "multi_query", "pma", "disagreement", "guided"])
def test_kinds_that_are_no_word_are_explained_by_the_key_that_says_them(
    heedful: Program, tmp_path: Path, name: str
) -> None:
    said = heedful("attention", "explain", name)
    assert (said.status, said.err) == (0, "")
    [use] = [line.split()[-1] for line in said.lines if line.startswith("use ")]
    assert heedful("train", "sets", "data=toy", "training.steps=1", use, "--out", tmp_path / "run").status == 0


def test_a_kind_of_attention_is_explained_and_drawn_beside_softmax(heedful: Program, tmp_path: Path) -> None:
    said = heedful("attention", "explain", "performer", "--out", tmp_path / "performer.json")
    assert (said.status, said.err) == (0, "")
    assert all(part in said.out for part in ("Choromanski", "cost    T,", 'model.mechanism="performer(features=128)"'))
    maps = json.loads((tmp_path / "performer.json").read_text())["maps"]
    assert [one["path"] for one in maps] == ["performer", "softmax"]
    assert heedful("attention", "explain", "luna", "--out", tmp_path / "luna.json").status == 0
    maps = {one["path"]: one for one in json.loads((tmp_path / "luna.json").read_text())["maps"]}
    assert len(maps) == 6 and sum(path.startswith("softmax: ") for path in maps) == 2
    packing = maps["luna: encoder.packs.0"]
    assert packing["rows"] == ["(1)", "(2)", "(3)"] and packing["columns"][:3] == ["the", "cat", "sat"]


def test_a_set_is_fetched_and_what_is_there_already_is_said(
    heedful: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"a poem\n"
    (tmp_path / "shelf" / "poem").mkdir(parents=True)
    (tmp_path / "shelf" / "poem" / "poem.txt").write_bytes(content)
    files = catalogue.published_files(
        "http://127.0.0.1:1/", ("poem.txt", len(content), hashlib.sha256(content).hexdigest())
    )
    monkeypatch.setitem(catalogue.PUBLIC, "poem", catalogue.PublicSet("poem", "a poem", "CC0", files))
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "shelf"))
    first, again = (heedful("data", "get", "poem", "--into", tmp_path / "data") for _ in range(2))
    home = tmp_path / "data" / "poem"
    assert (home / "poem.txt").read_bytes() == content
    assert (first.status, first.out) == (again.status, again.out) == (0, f"{home}\n")
    assert first.err == f"{home / 'poem.txt'} from {tmp_path / 'shelf' / 'poem' / 'poem.txt'}\n"
    assert again.err == f"poem is already complete in {home}\n"


# ---------------------------------------------------------------------- train


@pytest.mark.parametrize("recipe", RECIPES)
def test_train_leaves_a_whole_folder(workshop: Path, recipe: str) -> None:
    files = {"run.yaml", "metrics.jsonl", "timing.jsonl", "report.html", "result.json", "model/spec.json"}
    assert files | {"model/model.safetensors", "model/task.json"} <= listing(workshop / "runs" / recipe).keys()


def test_train_says_what_it_does_in_plain_lines_where_there_is_no_terminal(heedful: Program, tmp_path: Path) -> None:
    answer = heedful("train", "sets", *SMALL, "--out", tmp_path / "run")
    assert (answer.status, answer.out) == (0, "")
    said = ("Classify sets", "model     predictor", "data      clouds: 80, 3, 12", "step 2/2", "report    ")
    assert all(any(line.startswith(part) for line in answer.err.splitlines()) for part in said)
    assert "\x1b" not in answer.err and "\r" not in answer.err


def test_train_goes_into_runs_by_default(heedful: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert heedful("train", "sets", *SMALL).status == 0
    assert (tmp_path / "runs" / "sets" / "result.json").is_file()
    assert heedful("train", tmp_path / "runs" / "sets" / "run.yaml", "--out", "again").status == 0
    models = [listing(tmp_path / place / "model") for place in ("runs/sets", "again")]
    assert models[0] == models[1]  # what a run writes down is a recipe for the same run


@pytest.mark.parametrize("words", [["reverse"], ["reverse", *SMALL], ["reverse", "seed=1"]])
def test_an_unfinished_run_goes_on_without_being_told_all_again(
    heedful: Program, workshop: Path, tmp_path: Path, words: list[str]
) -> None:
    shutil.copytree(workshop / "runs" / "unfinished", tmp_path / "run")
    answer = heedful("train", *words, "--out", tmp_path / "run", "--resume")
    assert answer.status == 0
    assert "going on at step 2" in answer.err
    for name in ("run.yaml", "model/model.safetensors", "metrics.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (workshop / "runs" / "reverse" / name).read_bytes()


def test_a_finished_run_that_is_to_go_on_says_that_it_is_finished(heedful: Program, workshop: Path) -> None:
    before = listing(workshop / "runs" / "sets")
    answer = heedful("train", "sets", *SMALL, "--out", "runs/sets", "--resume")
    assert (answer.status, answer.out) == (0, "runs/sets is finished; its report is runs/sets/report.html\n")
    assert listing(workshop / "runs" / "sets") == before


def test_resume_with_nothing_saved_starts_at_the_beginning_and_says_so(heedful: Program, tmp_path: Path) -> None:
    answer = heedful("train", "sets", *SMALL, "--out", tmp_path / "run", "--resume")
    assert answer.status == 0
    assert "nothing saved yet, starting at step 0" in answer.err


@pytest.mark.parametrize("recipe", ["reverse", "own.yaml"])
def test_a_run_that_is_stopped_says_the_very_words_that_go_on_with_it(
    heedful: Program, workshop: Path, tmp_path: Path, recipe: str
) -> None:
    small = SMALL if recipe == "reverse" else []
    words = [recipe, *small, "training.steps=3", "model.mechanism=window(size=3)", "--out", tmp_path / "my run"]
    with pytest.MonkeyPatch.context() as patch:
        own = Loop.step
        patch.setattr(Loop, "step", lambda loop, *some: (own(loop, *some), signal.raise_signal(signal.SIGINT))[0])
        stopped = heedful("train", *words)
    assert stopped.status == 130
    said, again = stopped.err.splitlines()[-1].split(": heedful ")
    assert said == "heedful: stopped and saved; go on with"
    answer = heedful(*shlex.split(again))
    assert answer.status == 0 and "going on at step 1" in answer.err


def test_a_size_by_name_takes_the_place_of_the_recipe_s_numbers() -> None:
    spec = recipes.resolve("reverse", ["model.heads=2", "model.size=tiny"]).model
    assert spec["size"] == "tiny" and spec["heads"] == 2
    assert not {"width", "depth", "hidden"} & spec.keys()


# ---------------------------------------------------------------------- eval


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_the_last_line_of_eval_is_one_json_object(heedful: Program, workshop: Path, recipe: str, split: str) -> None:
    answer = heedful("eval", f"runs/{recipe}", "--split", split)
    (line,) = answer.lines
    said = json.loads(line)
    task = recipes.resolve(recipe).task
    assert answer.status == 0
    assert said.keys() == {"task", "split", "samples"} | SCORES[task]
    assert (said["task"], said["split"]) == (task, split)
    assert said["samples"] > 0
    assert all(0 <= said[share] <= 1 for share in said.keys() & {"exact", "tokens", "accuracy"})
    assert f"of {split}" in answer.err


def test_eval_scores_a_model_with_another_mechanism_beside_its_own(heedful: Program, workshop: Path) -> None:
    before = json.loads(heedful("eval", "runs/series").out)
    for word, same in (("window(size=100)", True), ("window(size=1)", False)):
        said = json.loads(heedful("eval", "runs/series", f"model.mechanism={word}").out)
        assert said["mechanism"] == word
        assert said["as_trained"] == {name: before[name] for name in said["as_trained"]}
        assert ({name: said[name] for name in said["as_trained"]} == said["as_trained"]) == same


def test_what_another_mechanism_draws_by_chance_is_the_same_whenever_it_is_asked(
    heedful: Program, workshop: Path
) -> None:
    asked = [heedful("eval", "runs/series", "model.mechanism=performer(features=4)").out for _ in range(2)]
    assert "as_trained" in asked[0]
    assert asked[0] == asked[1]


def test_eval_says_what_training_said(heedful: Program, workshop: Path) -> None:
    for recipe in RECIPES:
        result = json.loads((workshop / "runs" / recipe / "result.json").read_text())
        said = json.loads(heedful("eval", f"runs/{recipe}").out)
        assert {name: said[name] for name in result["scores"]} == pytest.approx(result["scores"])


def test_eval_takes_the_model_in_a_run_for_the_run(
    heedful: Program, workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = heedful("eval", "runs/reverse").out
    assert heedful("eval", "runs/reverse/model").out == whole
    assert heedful("eval", "runs/reverse/").out == whole
    monkeypatch.chdir(workshop / "runs" / "reverse" / "model")
    assert heedful("eval", ".").out == whole


def test_eval_scores_the_whole_of_a_file(heedful: Program, workshop: Path) -> None:
    for folder in ("runs/reverse", "runs/reverse/model", "model_alone"):
        said = json.loads(heedful("eval", folder, "data.test=pairs.tsv").out)
        assert (said["split"], said["samples"]) == ("test", 120)


def test_eval_takes_a_set_by_name_a_toy_and_another_seed(heedful: Program, workshop: Path) -> None:
    assert json.loads(heedful("eval", "runs/reverse", "data=sort").out)["samples"] == 12
    assert json.loads(heedful("eval", "runs/reverse", "data=toy").out)["samples"] == 400
    assert json.loads(heedful("eval", "runs/reverse", "seed=7").out)["samples"] == 12


# ---------------------------------------------------------------------- predict


def backwards(model: Any, batch: dict[str, torch.Tensor], *how: Any) -> list[list[Answer]]:
    """A perfect model, for what is to be shown is the order of its answers."""
    rows = [[token for token in row if token not in (PAD, END)] for row in batch["source"].tolist()]
    return [[Answer(tuple(row[::-1]), 0.0, True)] for row in rows]


def test_predict_keeps_the_order_of_more_lines_than_a_batch(
    heedful: Program, workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.pipelines.seq2seq_pipeline.search", backwards)
    lines = [f"{n:x}".rjust(1 + n % 9, "z") for n in range(1, 700)]
    answer = heedful("predict", "runs/reverse", stdin="\r\n".join(lines))
    assert answer.status == 0
    assert answer.lines == [line[::-1] for line in lines]


@pytest.mark.parametrize("recipe", RECIPES)
def test_predict_answers_words_and_lines_alike(heedful: Program, workshop: Path, recipe: str) -> None:
    words, lines = [ASKED[recipe]] * 3, f"\ufeff{ASKED[recipe]}\n" * 1 + f"{ASKED[recipe]}\r\n" * 2
    one, other = heedful("predict", f"runs/{recipe}", *words), heedful("predict", f"runs/{recipe}", stdin=lines)
    assert (one.status, one.err) == (other.status, other.err) == (0, "")
    assert one.lines == other.lines and len(one.lines) == 3


def test_predict_takes_negative_numbers_before_and_behind_options(heedful: Program, workshop: Path) -> None:
    for words in (["-1,2; .5,1", "-.5,-1"], ["--device", "cpu", "-1,2", "-3,4"], ["-1,2", "3,4", "--device=cpu"]):
        answer = heedful("predict", "runs/sets", *words)
        assert (answer.status, answer.err, len(answer.lines)) == (0, "", 2)
        assert set(answer.lines) <= {"1", "2", "3", "4"}
    assert heedful("predict", "runs/reverse", "--", "--beams").status == 0


@pytest.mark.parametrize("text", ["日本語", "12 ab", "ÄÖ\u2028x", "é\U0001f600", "\t"])
def test_characters_that_were_never_seen_do_not_stop_predict_and_look(
    heedful: Program, workshop: Path, tmp_path: Path, text: str
) -> None:
    asked = f"1{text}2"
    answer = heedful("predict", "runs/reverse", asked)
    assert answer.status == 0 and "holds what the model never saw" in answer.err
    assert heedful("look", "runs/reverse", asked, "--out", tmp_path / "seen.html").status == 0


def test_predict_gives_the_best_answers_with_their_scores(heedful: Program, workshop: Path) -> None:
    answer = heedful("predict", "runs/reverse", "12", "ab", "--beams", "4", "--best", "3")
    assert (answer.status, len(answer.lines)) == (0, 6)
    scores = [float(line.rsplit("\t", 1)[1]) for line in answer.lines]
    assert all(score < 0 for score in scores)
    answers = [line.rsplit("\t", 1)[0] for line in answer.lines]
    assert scores[:3] == sorted(scores[:3], reverse=True) and scores[3:] == sorted(scores[3:], reverse=True)
    alone = heedful("predict", "runs/reverse", "12", "ab", "--beams", "4")
    assert alone.lines == [answers[0], answers[3]]


def test_predict_says_its_answers_as_json(heedful: Program, workshop: Path) -> None:
    vectors = heedful("predict", "runs/sets", "0.1,0.2; 0.3,0.4", "--json")
    [label] = map(json.loads, vectors.lines)
    assert label["kind"] == "label" and label["name"] in dict(label["chances"])
    assert sum(chance for _, chance in label["chances"]) == pytest.approx(1.0)
    best = heedful("predict", "runs/reverse", "12", "--beams", "2", "--best", "2", "--json")
    assert [(one["kind"], one["score"] < 0) for one in map(json.loads, best.lines)] == [("text", True)] * 2
    streamed = heedful("predict", "runs/reverse", "12", "--json", "--stream")
    assert streamed.status == 2 and "leave one of them out" in streamed.err


def test_predict_forecasts_a_file_as_it_does_its_numbers(heedful: Program, workshop: Path) -> None:
    rows = (workshop / "series.csv").read_text().splitlines()[1:]
    file, numbers = heedful("predict", "runs/series", "series.csv"), heedful("predict", "runs/series", ";".join(rows))
    assert (file.status, file.err) == (0, "")
    assert file.out == numbers.out
    steps = file.out.strip().split("; ")
    assert len(steps) == 8 and all(len(step.split(",")) == 2 for step in steps)


def test_predict_tells_large_numbers_apart(heedful: Program, workshop: Path) -> None:
    one, other = (heedful("predict", "runs/series", f"123456.75,{last}").out for last in ("123456.5", "123456.25"))
    assert one != other


# ---------------------------------------------------------------------- look


class Page(HTMLParser):
    """Counts the tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)


@pytest.mark.parametrize("recipe", RECIPES)
def test_look_writes_a_page_pictures_and_exact_numbers(
    heedful: Program, workshop: Path, tmp_path: Path, recipe: str
) -> None:
    for ending, begin in ((".html", b"<!doctype html"), (".png", b"\x89PNG"), (".svg", b"<?xml"), (".json", b"{")):
        out = tmp_path / f"seen{ending}"
        answer = heedful("look", f"runs/{recipe}", ASKED[recipe], "--out", out)
        assert (answer.status, answer.err) == (0, "")
        assert answer.lines[-1] == str(out)
        assert out.read_bytes().lower().startswith(begin.lower())
    assert "script" in Page((tmp_path / "seen.html").read_text(encoding="utf-8")).tags


def test_look_at_one_layer_writes_that_layer_alone(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    sizes = {}
    for name, words in {"all": [], "one": ["--layer", "decoder.blocks.0.cross"]}.items():
        out = tmp_path / f"{name}.json"
        assert heedful("look", "runs/reverse", "12ab", "--out", out, *words).status == 0
        sizes[name] = out.read_text(encoding="utf-8")
    assert "encoder.blocks.0" in sizes["all"] and "encoder.blocks.0" not in sizes["one"]
    assert "decoder.blocks.0.cross" in sizes["one"]


def test_look_draws_each_rollout_over_an_image_once(heedful: Program, workshop: Path, tmp_path: Path) -> None:
    out = tmp_path / "seen.svg"
    for words, count in (([], 1), (["--discard", "0.9"], 2)):
        said = heedful("look", "runs/vit", "photos/class0/0.png", "--rollout", *words, "--out", out)
        assert (said.status, said.err) == (0, "")
        assert out.read_text(encoding="utf-8").count(">rollout through all layers") == count


# ---------------------------------------------------------------------- check


@pytest.mark.parametrize("recipe", RECIPES)
def test_check_says_of_every_law_whether_it_holds(heedful: Program, workshop: Path, recipe: str) -> None:
    answer = heedful("check", f"runs/{recipe}")
    assert (answer.status, answer.err) == (0, "")
    assert len(answer.lines) == 5
    assert all(re.match(r"(holds|n/a) +[a-z].+: .+", line) for line in answer.lines)


def test_check_fails_where_a_model_sees_the_future(
    heedful: Program, workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.models.text.encoder_decoder.Causal", Everything)
    answer = heedful("check", "runs/reverse")
    assert (answer.status, answer.err) == (1, "")
    said = {line.split(maxsplit=1)[1].partition(":")[0]: line.split()[0] for line in answer.lines}
    assert said["the future never leaks"] == said["with memory == without"] == "FAILS"
    assert said["padded == unpadded"] == said["save, load, same outputs"] == "holds"
