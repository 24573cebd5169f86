"""Translating with a trained toy: its scores are sacrebleu's, its answers keep their order, and it comes back whole."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
from torch.nn.functional import cross_entropy

from heedful.data.encoded_pairs import Encoded
from heedful.decoding import Decoding
from heedful.errors import Refusal
from heedful.metrics.alignment_error import Gaze
from heedful.models.text.transformer import BEGIN, END
from heedful.pipelines.translation_pipeline import Translating, TranslationLearned
from heedful.tasks.text.translation import TASK
from heedful.tasks.work import Work
from heedful.training import run
from tests.answered import plain
from tests.tasks.conftest import Translator

ASKED = ["A dog runs .", "The old men watched two birds .", "Three cats sleep near the house ."]
BEAMS = Decoding(beams=4)
SPLITS = ("13a", "none", "char", "intl")  # of words, by sacrebleu


# ---------------------------------------------------------------------- scores


def otherwise(sample: Encoded, at: int) -> Encoded:
    """A sample as somebody else translates it: each third in another order, each fifth with marks beside its words."""
    first, second, *rest = sample.texts.target.split()
    words = " ".join([second, first, *rest] if at % 3 == 0 else [first, second, *rest])
    target = f"«{words.removesuffix(' .')}»." if at % 5 == 0 else words
    return replace(sample, texts=replace(sample.texts, target=target))


@pytest.mark.parametrize("tokenize", SPLITS)
def test_the_score_is_what_sacrebleu_says_of_what_predict_writes(translator: Translator, tokenize: str) -> None:
    samples = [otherwise(sample, at) for at, sample in enumerate(translator.splits.test)]  # it writes its own perfectly
    written = plain(translator.task.predict(translator.model, translator.sources))
    references = [[sample.texts.target for sample in samples]]
    said = Work(TASK, replace(translator.learned, bleu=tokenize)).score(translator.model, samples)
    bleu = {split: sacrebleu.BLEU(tokenize=split, force=True).corpus_score(written, references) for split in SPLITS}
    assert len({found.score for found in bleu.values()}) == len(SPLITS), "every split of words has a score of its own"
    assert said["bleu"] == bleu[tokenize].score and 50 < said["bleu"] < 99
    assert said["chrf"] == sacrebleu.CHRF().corpus_score(written, references).score and 50 < said["chrf"] < 99


def test_perplexity_is_that_of_the_right_targets_one_by_one(translator: Translator) -> None:
    total = count = 0.0
    translator.model.eval()
    for sample in translator.splits.test[:40]:
        source, target = torch.tensor([[*sample.source, END]]), torch.tensor([[BEGIN, *sample.target]])
        answer = torch.tensor([*sample.target, END])
        with torch.no_grad():
            total += float(cross_entropy(translator.model(source, target)[0], answer, reduction="sum"))
        count += len(answer)
    said = translator.task.score(translator.model, translator.splits.test[:40])["perplexity"]
    assert said == pytest.approx(math.exp(total / count), rel=1e-4)


def test_the_result_of_the_run_is_this_score(translator: Translator) -> None:
    said = json.loads((translator.out / "result.json").read_text())["scores"]
    assert translator.task.score(translator.model, translator.splits.test) == said


# ---------------------------------------------------------------------- answers


def test_answers_come_in_order_and_are_those_that_come_alone(translator: Translator) -> None:
    mixed = [text for pair in zip(translator.sources[:30], ASKED * 10, strict=True) for text in pair]
    together = plain(translator.task.predict(translator.model, mixed))
    assert len(together) == 60 and len(set(together)) > 25
    alone = [plain(translator.task.predict(translator.model, [text]))[0] for text in mixed[:16]]
    assert together[:16] == alone
    assert together[1::2] == together[1:6:2] * 10


def test_more_lines_than_a_window_keep_their_order(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plain(translator.task.predict(translator.model, translator.sources[:40]))
    monkeypatch.setattr("heedful.pipelines.seq2seq_pipeline.WINDOW", 7)
    monkeypatch.setattr("heedful.pipelines.seq2seq_pipeline.ROWS", 90)  # a few sources at once
    assert plain(translator.task.predict(translator.model, translator.sources[:40])) == whole


@pytest.mark.parametrize("blank", ["", "   ", "\t", "\u3000"])
def test_a_blank_line_is_translated_by_a_blank_line(translator: Translator, blank: str) -> None:
    lines = [ASKED[0], blank, ASKED[1], blank]
    written = plain(translator.task.predict(translator.model, lines))
    assert written[1] == written[3] == ""
    assert [written[0], written[2]] == plain(translator.task.predict(translator.model, ASKED[:2]))
    best = list(translator.task.best(translator.model, lines, Decoding(beams=3), 3))
    assert [answer.text for answer in best[1]] == ["", "", ""]


@pytest.mark.parametrize("text", ["", "  ", ASKED[0]])
def test_a_stream_joins_to_what_predict_writes(translator: Translator, text: str) -> None:
    pieces = list(translator.task.stream(translator.model, text, Decoding()))
    (answer,) = next(translator.task.best(translator.model, [text], Decoding()))
    assert "".join(pieces) == answer.text
    assert len(pieces) > 2 or not text.strip()


@pytest.mark.parametrize("best", [1, 2, 5])
def test_the_best_are_as_many_as_were_asked_for_and_their_scores_fall(translator: Translator, best: int) -> None:
    found = list(translator.task.best(translator.model, ASKED, Decoding(beams=5), best))
    assert [len(answers) for answers in found] == [best] * len(ASKED)
    for answers in found:
        scores = [answer.score for answer in answers]
        assert scores == sorted(scores, reverse=True) and scores[0] < 0
        assert len({answer.text for answer in answers}) == best


def test_a_score_is_the_log_probability_of_the_answer(translator: Translator) -> None:
    ids = translator.learned.tokenizer.encode(ASKED[1])
    sample = translator.pipeline.accepts(ASKED[1], translator.learned)
    for answer in next(translator.pipeline.searched(translator.model, [sample], translator.learned, BEAMS, 4)):
        written = [*answer.tokens, END]
        target = torch.tensor([[BEGIN, *answer.tokens]])
        with torch.no_grad():
            chances = translator.model.eval()(torch.tensor([[*ids, END]]), target)[0].log_softmax(-1)
        assert answer.score == pytest.approx(float(chances[range(len(written)), written].sum()), abs=1e-4)


def test_samples_are_shown_with_their_reference_and_what_was_written(translator: Translator) -> None:
    shown = translator.task.show(translator.model, translator.splits.test[:5])
    written = plain(translator.task.predict(translator.model, translator.sources[:5]))
    assert shown.header == ("source", "reference", "written")
    assert list(shown.rows) == list(zip(translator.sources[:5], translator.targets[:5], written, strict=True))


# ---------------------------------------------------------------------- kept beside the model


def test_a_task_comes_back_as_it_was_written(translator: Translator, tmp_path: Path) -> None:
    learned = translator.learned
    assert learned.gaze is not None and learned.decoding == Decoding(beams=2, length_penalty=1.0)
    for gaze, bleu in ((learned.gaze, "13a"), (Gaze("decoder.blocks.0.cross", 3, True), "none"), (None, "zh")):
        one = replace(learned, gaze=gaze, bleu=bleu, search=Decoding(temperature=0.5, top_k=3))
        Work(TASK, one).write(tmp_path)
        state = json.loads((tmp_path / "task.json").read_text())
        assert state.pop("task") == "translation"
        other = TranslationLearned.read(tmp_path, state)
        assert (other.gaze, other.bleu, other.decoding) == (gaze, bleu, one.decoding)
        assert other.tokenizer.encode_all(ASKED) == learned.tokenizer.encode_all(ASKED)


BROKEN: dict[str, dict[str, Any]] = {
    "no split of words": {"bleu": None},
    "a split of words that is not": {"bleu": "14a"},
    "a gaze that is a list": {"gaze": [1]},
    "a gaze without a head": {"gaze": {"layer": "decoder.blocks.0.cross", "read": True}},
    "a head that is no number": {"gaze": {"layer": "decoder.blocks.0.cross", "head": "1", "read": True}},
    "beams that are none": {"decoding": {"beams": 0}},
    "beams by chance": {"decoding": {"beams": 2, "temperature": 1.0}},
}


def copied(translator: Translator, folder: Path, **changes: Any) -> Path:
    """A copy of the model with another task.json."""
    for path in (translator.out / "model").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "manifest.json").unlink()
    state = json.loads((folder / "task.json").read_text()) | changes
    (folder / "task.json").write_text(json.dumps(state), encoding="utf-8")
    return folder


@pytest.mark.parametrize("wrong", BROKEN)
def test_a_task_that_is_not_whole_is_refused(translator: Translator, tmp_path: Path, wrong: str) -> None:
    with pytest.raises(Refusal, match=r"task\.json is not whole: "):
        run.load_trained(copied(translator, tmp_path, **BROKEN[wrong]))


@pytest.mark.parametrize(("layer", "head"), [("decoder.blocks.7.cross", 0), ("decoder.blocks.0.cross", 4)])
def test_a_gaze_that_the_model_does_not_have_is_refused(
    translator: Translator, tmp_path: Path, layer: str, head: int
) -> None:
    model, task = run.load_trained(copied(translator, tmp_path, gaze={"layer": layer, "head": head, "read": True}))
    assert isinstance(task, Work) and isinstance(task.pipeline, Translating)
    with pytest.raises(Refusal, match=f"{layer}, head {head}"):
        list(task.pipeline.align(model, [(ASKED[0], None)], task.learned))


# ---------------------------------------------------------------------- looked into


def test_looking_shows_first_which_words_belong_together_and_then_every_layer(translator: Translator) -> None:
    example = translator.task.look(translator.model, ASKED[0])
    (answer,) = plain(translator.task.predict(translator.model, ASKED[:1]))
    (found,) = translator.align([(ASKED[0], answer)])
    assert example.name == f"{ASKED[0]} → {answer}"
    first, *rest = example.maps
    assert (first.path, first.heads) == ("alignment", 1)
    assert (list(first.columns), list(first.rows)) == (ASKED[0].split(), answer.split())
    torch.testing.assert_close(first.weights[0], found.matrix)
    assert example.words is not None and example.words.links == found.links
    attentions = [path for path, part in translator.model.named_modules() if hasattr(part, "mechanism")]
    assert [map.path for map in rest] == attentions
    assert all(map.heads == 4 for map in rest)


@pytest.mark.parametrize("blank", ["", " "])
def test_there_is_nothing_to_be_seen_in_a_blank_line(translator: Translator, blank: str) -> None:
    with pytest.raises(Refusal, match=r"^the input is empty; give a sentence$"):
        translator.task.look(translator.model, blank)


def test_what_the_words_are_is_in_the_figures_of_a_report(translator: Translator) -> None:
    finding = translator.task.finding(translator.model, translator.splits.test)
    gaze = translator.learned.gaze
    assert finding is not None and gaze is not None
    assert (finding.layer, finding.head) == (gaze.layer, "mean" if gaze.head is None else str(gaze.head))
    rows = {name: (value, note) for name, value, note in finding.figures.rows}
    assert rows["alignment error rate"][1] == "of the links given for 200 samples"
    assert 0 < float(rows["alignment error rate"][0].removesuffix(" %")) < 25
