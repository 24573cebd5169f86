"""Every recipe learns on its toy to the score that it states, and leaves a whole run folder behind."""

import json
import math
import re
from copy import deepcopy
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import nn

import heedful
from heedful import models
from heedful.cli.data_verb import MADE
from heedful.data.collate import pick
from heedful.data.readers.reader import Made
from heedful.data.splits import Splits
from heedful.errors import Failure, Refusal
from heedful.looking.maps import visible
from heedful.metrics.alignment_error import Gaze, looks_across
from heedful.metrics.metric import is_share, metric_of
from heedful.models import BEiT
from heedful.models.specs import PAD
from heedful.pipelines.translation_pipeline import TranslationLearned
from heedful.results import Result
from heedful.tasks import TASKS, Task
from heedful.testing.recipe_laws import reads_back, scores_are_known
from heedful.training import run
from heedful.training.microbatches import Portions
from heedful.training.spec import recipes
from tests.laws.initial_loss import OTHER_LOSS, largest
from tests.recipes.toys import Trained, toy

OTHER_ANSWERS = {"answer": "spans of a text", "classify-several": "the classes of one question, of many questions"}
ONE_ROW = {
    "series",
    "language-modelling",
    "masked-lm",
    "span-corruption",
    "infilling",
    "word2vec",
    "glove",
}  # what is held out follows it
LOADING = ("href", "src", "action", "srcset", "data", "poster")  # what makes a browser look elsewhere


@dataclass(frozen=True)
class Opened:
    """What a run left, opened again: its model, its task and its samples."""

    model: nn.Module
    task: Task
    splits: Splits[Any]


@pytest.fixture(scope="module", params=recipes.names())
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return toy(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def opened(trained: Trained) -> Opened:
    model, task = run.load_trained(trained.out)
    return Opened(model, task, task.reopen(trained.spec.data, trained.spec.seed))


def values(recipe: str) -> dict[str, Any]:
    path = recipes.HOME / f"{recipe}.yaml"
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


# ---------------------------------------------------------------------- the files


@pytest.mark.parametrize("recipe", recipes.names())
def test_a_recipe_says_what_it_is_about_and_what_to_expect(recipe: str) -> None:
    for changes in ([], ["data=toy"], *([f"data={name}"] for name in recipes.sets(recipe))):
        spec = recipes.resolve(recipe, changes)
        assert re.fullmatch(r"[A-Z].+\.", spec.about)
        assert not re.search("shape", spec.about.split("out of the box")[0]), "it is said of photographs too"
        scores_are_known(recipe, changes)


@pytest.mark.parametrize("recipe", recipes.names())
@pytest.mark.parametrize("changes", [[], ["data=toy"]])
def test_a_recipe_is_taken_at_its_word(recipe: str, changes: list[str]) -> None:
    reads_back(recipe, changes)


@pytest.mark.parametrize("recipe", [name for name in recipes.names() if recipes.sets(name)])
def test_a_known_set_is_trained_on_as_its_version_says(recipe: str) -> None:
    for name, version in values(recipe)["sets"].items():
        resolved = recipes.resolve(recipe, [f"data={name}"]).model_dump(mode="json")
        assert recipes.merge_values(resolved, version) == resolved and resolved["data"]["name"] == name
        other = recipes.resolve(recipe, [f"data={name}", "training.steps=7"])
        assert other.expected is None and other.training.steps == 7
        assert other.training.batch == resolved["training"]["batch"]
        assert recipes.resolve(recipe, ["data=elsewhere"]).training == recipes.resolve(recipe).training


@pytest.mark.parametrize("recipe", recipes.names())
def test_a_toy_is_smaller_than_its_recipe(recipe: str) -> None:
    full, small = recipes.resolve(recipe), recipes.resolve(recipe, ["data=toy"])
    whole = full.data.samples if isinstance(full.data, Made) else math.inf  # a public set is whole
    assert small.data.samples < whole and small.training.steps < full.training.steps
    assert (small.task, small.model["family"]) == (full.task, full.model["family"])
    assert small.data.name == full.data.name or small.data.name in MADE  # a public set has a made one for its toy


def test_a_toy_needs_no_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for recipe in recipes.names():
        spec = recipes.resolve(recipe, ["data=toy", "data.samples=200", "data.held_out=40"])
        handed_on = spec.start and getattr(spec.data, "tokenizer", None) == spec.start  # by what is trained first
        data = spec.data.model_copy(update={"tokenizer": "characters"} if handed_on else {})
        assert len(TASKS[spec.task].open(data, spec.seed)[1].test) > 0


def test_a_recipe_that_was_changed_expects_nothing_and_a_toy_what_toys_do(tmp_path: Path) -> None:
    def expected(score: float) -> dict[str, Any]:
        return {"score": {"exact": score}, "seconds": 1.0, "where": "a laptop"}

    said = values("reverse")
    said |= {"expected": expected(0.9), "toy": said["toy"] | {"expected": expected(0.5)}}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(said), encoding="utf-8")
    asked = ([], ["data=toy"], ["training.steps=7"], ["data=toy", "training.steps=7"], ["seed=2", "data=toy"])
    found = [recipes.resolve(str(path), changes).expected for changes in asked]
    assert [one and one.score["exact"] for one in found] == [0.9, 0.5, None, None, None]


# ---------------------------------------------------------------------- the scores


def test_a_recipe_reaches_on_its_toy_the_score_that_it_states(trained: Trained) -> None:
    assert trained.spec.expected is not None, "the toy states no score"
    for name, score in trained.spec.expected.score.items():
        assert trained.result["scores"][name] >= score, name


def test_a_fresh_model_of_a_recipe_begins_near_uniform_chances(trained: Trained, opened: Opened) -> None:
    """Mean of three seeds, on the first batch that each learns from; a model of other answers is asked nothing."""
    spec = models.spec(**recipes.validate_spec(yaml.safe_load((trained.out / "run.yaml").read_text())).model)
    if spec.family in OTHER_LOSS or trained.spec.task in OTHER_ANSWERS:
        return
    losses, task = [], opened.task
    if isinstance(opened.model, BEiT):
        task = replace(task, chosen=replace(task.objective, teacher=opened.model.coder))
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        model = models.assemble(spec)
        task.on_train_begin(model)
        run = trained.spec.model_copy(update={"seed": seed, "model": spec.model_dump()})
        with torch.no_grad():
            total, count = task.loss(model, Portions(run, task, opened.splits.train).at(0).batches[0])
        losses.append(float(total / count))
    assert sum(losses) / len(losses) <= largest(spec)


def test_no_model_that_does_not_read_fills_gaps_as_well_as_the_toy_of_t5_states() -> None:
    """Who does not read knows at best how often each answer is written: its score is their entropy."""
    spec = recipes.resolve("t5-text", ["data=toy"])
    task, splits = TASKS[spec.task].open(spec.data, spec.seed)
    answers = task.batch(task.augmented(splits.train, 1))["answer"]
    counts = answers.unique(dim=0, return_counts=True)[1] / len(answers)
    blind = float((counts * counts.log()).sum()) / float((answers != PAD).sum(1).double().mean())
    assert spec.expected is not None and spec.expected.score["log_likelihood"] > blind + 0.1


def test_what_was_tested_was_never_trained_on(trained: Trained, opened: Opened) -> None:
    write = opened.task.as_input
    if trained.spec.task in ONE_ROW:
        return
    learned, tested = ({write(sample) for sample in part} for part in (opened.splits.train, opened.splits.test))
    assert learned and tested and not learned & tested


def test_an_answer_has_a_type_and_reads_back_from_its_json(opened: Opened) -> None:
    asked = [opened.task.as_input(sample) for sample in pick(opened.splits.test, 2)]
    for one in opened.task.predict(opened.model, asked):
        assert isinstance(one.plain(), str) and one.section().html()
        assert Result.read(json.loads(json.dumps(one.json()))) == one


def test_a_model_whose_weights_are_not_numbers_has_no_answer(opened: Opened) -> None:
    """Loading refuses such a folder; here the weights were spoilt behind it."""
    lost = deepcopy(opened.model)
    for weight in lost.parameters():
        torch.nn.init.constant_(weight, torch.nan)
    asked = [opened.task.as_input(sample) for sample in pick(opened.splits.test, 1)]
    with pytest.raises((Failure, Refusal), match=r"not (numbers|finite|a number)"):
        list(opened.task.predict(lost, asked))


# ---------------------------------------------------------------------- the folder


def test_a_run_folder_holds_all_that_it_should(trained: Trained) -> None:
    names = {path.name for path in trained.out.iterdir()}
    told = {"metrics.jsonl", "timing.jsonl", "tensorboard", "report.html"}
    assert names == told | {"run.yaml", "checkpoints", "model", "result.json", *trained.spec.compare}
    assert any(path.name.startswith("events.out.tfevents") for path in (trained.out / "tensorboard").iterdir())
    assert any((trained.out / "checkpoints").iterdir())
    assert json.loads((trained.out / "result.json").read_text()) == trained.result
    begun = recipes.validate_spec(yaml.safe_load((trained.out / "run.yaml").read_text()))
    assert begun.training == trained.spec.training and begun.data == trained.spec.data


def test_there_is_nothing_but_safetensors_and_json(trained: Trained) -> None:
    files = [path for name in ("checkpoints", "model") for path in (trained.out / name).rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".safetensors", ".json", ".md"}
    assert [path.name for path in files if path.suffix == ".md"] == ["README.md"]
    for path in (path for path in files if path.suffix != ".md"):
        if path.suffix == ".json":
            said = json.dumps(json.loads(path.read_bytes()))
            assert path.parent.name != "model" or str(trained.out) not in said  # it does not know where it was made
        else:  # a header of plain JSON, then numbers
            data = path.read_bytes()
            size = int.from_bytes(data[:8], "little")
            header = json.loads(data[8 : 8 + size])
            assert all(part.keys() == {"dtype", "shape", "data_offsets"} for part in header.values())


def test_the_model_of_a_run_has_the_score_that_the_run_says(trained: Trained, opened: Opened) -> None:
    assert opened.task.score(opened.model, opened.splits.test) == trained.result["scores"]
    assert isinstance(heedful.load(trained.out), type(opened.model))


class Page(HTMLParser):
    """A report as a browser sees it: the titles of its parts, what they hold, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: dict[str, list[str]] = {}
        self.data: dict[str, list[dict[str, Any]]] = {}
        self.links: list[str] = []
        self.kind, self.inside = "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.links += [str(found[name]) for name in LOADING if name in found]
        self.inside = tag if tag in ("h2", "script") else ""
        self.kind = str(found["class"]) if tag in ("div", "tr", "table") and "class" in found else self.kind

    def handle_data(self, text: str) -> None:
        if self.inside == "h2":
            self.parts[text] = []
        elif self.inside == "script" and self.kind in ("chart", "viewer", "aligned"):
            self.data.setdefault(self.kind, []).append(json.loads(text))
            self.kind = ""
        elif self.parts:
            self.parts[list(self.parts)[-1]].append(text)
        self.inside = ""


@pytest.fixture(scope="module")
def page(trained: Trained) -> Page:
    return Page((trained.out / "report.html").read_text(encoding="utf-8"))


def test_a_report_loads_nothing_from_outside(trained: Trained, page: Page) -> None:
    assert page.links[0] == "data:," and all(link.startswith("data:image/") for link in page.links[1:])
    text = (trained.out / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|url\(|@import", text)


def test_a_report_shows_what_was_learned_and_when(trained: Trained, page: Page) -> None:
    curves = {curve["name"]: curve["points"] for chart in page.data["chart"] for curve in chart["curves"]}
    told = [json.loads(line) for line in (trained.out / "metrics.jsonl").read_text().splitlines()]
    losses = [[row["step"], row["loss"]] for row in told if row["split"] == "train"]
    assert len(losses) > 3 and curves["training loss"] == [pytest.approx(point, rel=1e-5) for point in losses]
    watched = TASKS[trained.spec.task].watch
    scores = [[row["step"], row[watched]] for row in told if row["split"] == "valid"]
    assert curves[f"{watched.replace('_', ' ')}, validation"] == [pytest.approx(point, rel=1e-5) for point in scores]


def test_a_report_shows_samples_with_their_answers(opened: Opened, page: Page) -> None:
    (title,) = [title for title in page.parts if title.endswith("it never saw")]
    shown = opened.task.show(opened.model, pick(opened.splits.test, 12))
    assert len(shown.rows) == 12
    assert {*shown.header, *(cell for row in shown.rows for cell in row)} <= set(page.parts[title])


def test_a_report_shows_every_layer_and_head(trained: Trained, opened: Opened, page: Page) -> None:
    parts = opened.model.named_modules()
    layers = {name: part.project.heads for name, part in parts if hasattr(part, "mechanism")}
    if not layers:  # a convolutional network, which attends to nothing
        assert "viewer" not in page.data
        return
    (viewer,) = page.data["viewer"]
    also = {"alignment"} if trained.spec.task == "translation" else set()
    assert len(viewer["examples"]) == 4
    for example in viewer["examples"]:
        assert {shown["path"] for shown in example["maps"]} == {*layers} | also
        for shown in example["maps"]:
            if shown["path"] in also:
                continue
            assert len(shown["weights"]) == layers[shown["path"]]
            rows = torch.tensor(shown["weights"]).unflatten(1, (len(shown["rows"]), len(shown["columns"]))) / 10_000
            torch.testing.assert_close(rows.sum(-1), torch.ones(rows.shape[:2]), rtol=0, atol=0.01)


def given_to_the_end(example: dict[str, Any], gaze: Gaze) -> torch.Tensor:
    """How much each target word looked at the end of the source, where the model looks at the word that it writes."""
    (shown,) = [one for one in example["maps"] if one["path"] == gaze.layer]
    heads = torch.tensor(shown["weights"], dtype=torch.float64).unflatten(1, (len(shown["rows"]), -1)) / 10_000  # H T S
    ends = (heads.mean(0) if gaze.head is None else heads[gaze.head])[:, -1].roll(-int(gaze.read))
    words: list[list[torch.Tensor]] = []
    for piece, end in zip(shown["rows"][:-1], ends, strict=False):
        if piece.startswith(visible(" ")):
            words.append([])
        words[-1].append(end)
    return torch.stack([torch.stack(word).mean() for word in words])


def test_the_report_of_a_translation_shows_first_which_words_belong_together(opened: Opened, page: Page) -> None:
    learned = getattr(opened.task, "learned", None)
    if not isinstance(learned, TranslationLearned) or not looks_across(opened.model):
        return
    (viewer,), (lines,) = page.data["viewer"], page.data["aligned"]
    assert learned.gaze is not None
    for example in viewer["examples"]:
        (shown,) = [one for one in example["maps"] if one["path"] == "alignment"]
        source, _, target = example["name"].partition(" → ")
        assert (shown["columns"], shown["rows"]) == (source.split(), target.split())
        weights = torch.tensor(shown["weights"], dtype=torch.float64) / 10_000
        assert weights.shape == (1, len(shown["rows"]) * len(shown["columns"]))
        rows = weights.view(len(shown["rows"]), -1).sum(-1)
        lacks = given_to_the_end(example, learned.gaze)  # all of it, where a full stop looks at the end alone
        torch.testing.assert_close(rows + lacks, torch.ones(len(rows)).double(), rtol=0, atol=0.005)
        assert rows.max() > 0.5
    assert all({"source", "target", "links", "sure"} <= one.keys() for one in lines["examples"])
    assert any("error rate" in text for text in page.parts["Word by word"])


def test_every_figure_of_a_report_says_how_it_is_read(trained: Trained) -> None:
    text = (trained.out / "report.html").read_text(encoding="utf-8")
    found = re.findall(r"<section>(.*?)</section>", text, re.DOTALL)
    figures = [one for one in found if re.search('class="(charts|samples|viewer|aligned|over|overlays)"', one)]
    assert len(figures) >= 2 and not [one[:200] for one in figures if not re.search("</h2><p>[^<]{40,}</p>", one)]


def test_a_chart_of_shares_holds_shares_alone(trained: Trained, page: Page) -> None:
    metrics = TASKS[trained.spec.task].metrics
    scores = trained.result["scores"]
    names = [name for name in scores if is_share(name, metrics) and metric_of(name, metrics).more_is_better]
    shares = {f"{name.replace('_', ' ')}, validation" for name in names}
    for chart in page.data["chart"]:
        named = {curve["name"] for curve in chart["curves"]}
        assert named <= shares if chart["label"] == "share" else not named & shares


def test_a_report_states_the_scores(trained: Trained, page: Page) -> None:
    for name, value in trained.result["scores"].items():
        share = is_share(name, TASKS[trained.spec.task].metrics)  # from 0 to 1; BLEU goes up to 100
        assert (f"{100 * value:.2f} %" if share else f"{value:.2f}") in page.parts["Scores"], name
    if trained.spec.task == "translation":
        scores = [trained.result["scores"][name] for name in ("bleu", "chrf")]
        assert all(1 < score <= 100 + 1e-9 for score in scores)  # sacrebleu's own 100 is 100.00000000000004
