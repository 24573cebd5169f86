"""A recurrent translator, in a package of one's own, does all that the translators of the house do."""

import json

import pytest
import torch
from PIL import Image

import heedful as library
from heedful.data.toys.invented_language import sentences
from heedful.formats.weights import state
from heedful.looking.alignment import agreement
from heedful.training.trained_run import usable
from tests.outside.conftest import HERE, scores_of

RECIPE = HERE / "translation.yaml"
FEW = ["data.samples=96", "data.held_out=8", "training.steps=14", "training.batch=8", "training.save_every=4",
       "training.evaluate_every=5", "training.log_every=3", "training.average=0.9"]  # fmt: skip
SENTENCE, TRANSLATION = "A bird jumped in a house .", "neru tani kudi butuvi ."
CROSS = "decoder.cross"


def test_unseen_sentences_are_translated_far_above_chance(trained, heedful):
    scores = scores_of(trained("translation"))
    assert scores["bleu"] > 60 and scores["chrf"] > 80 and scores["perplexity"] < 1.5  # 170 words to choose among
    assert json.loads(heedful("eval", trained("translation")).splitlines()[-1])["bleu"] == scores["bleu"]


def test_sentences_are_translated_in_every_way_that_a_model_which_writes_is_asked(trained, heedful):
    run = trained("translation")
    assert heedful("predict", run, SENTENCE).splitlines() == [TRANSLATION]
    assert heedful("predict", run, stdin=f"{SENTENCE}\n\n{SENTENCE}\n").splitlines() == [TRANSLATION, "", TRANSLATION]
    assert json.loads(heedful("predict", run, SENTENCE, "--json"))["text"] == TRANSLATION
    assert heedful("predict", run, SENTENCE, "--stream").splitlines() == [TRANSLATION]
    best = [line.split("\t") for line in heedful("predict", run, SENTENCE, "--beams", 4, "--best", 3).splitlines()]
    assert best[0][0] == TRANSLATION and len({text for text, _ in best}) == 3
    assert [float(score) for _, score in best] == sorted((float(score) for _, score in best), reverse=True)


def test_each_word_shows_where_it_looks_in_the_source(trained, heedful, tmp_path):
    run = trained("translation")
    for name in ("seen.png", "seen.html", "seen.json"):
        heedful("look", run, SENTENCE, "--out", tmp_path / name)
    with Image.open(tmp_path / "seen.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 100
    assert f'"{CROSS}"' in (tmp_path / "seen.html").read_text()
    maps = {one["path"]: one for one in json.loads((tmp_path / "seen.json").read_text())["maps"]}
    assert set(maps) == {"alignment", CROSS} and maps["alignment"]["rows"] == TRANSLATION.split()
    (weights,) = torch.tensor(maps["alignment"]["weights"])  # T S
    words = SENTENCE.split()
    assert [words[at] for at in weights.argmax(1)] == ["bird", "house", "in", "jumped", "."]


def test_words_are_linked_to_those_that_they_were_translated_by(trained):
    model, use = usable(trained("translation"))
    phrases = sentences(60, 5)
    found = use.pipeline.align(model, [(one.source, one.target) for one in phrases], use.learned)
    assert agreement([one.links for one in found], [one.links for one in phrases]).error_rate < 0.4


def test_what_is_saved_is_loaded_to_the_same_bits_and_obeys_the_laws(trained, heedful, tmp_path):
    model = library.load(trained("translation"))
    library.save(model, tmp_path / "again")
    again = library.load(tmp_path / "again")
    assert type(again.decoder) is type(model.decoder) and again.spec == model.spec
    assert all(torch.equal(one, state(again)[name]) for name, one in state(model).items())
    said = heedful("check", trained("translation"))
    assert said.count("holds") == 5 and "FAILS" not in said


def test_a_translator_that_is_killed_goes_on_to_the_same_bits(heedful):
    assert heedful("verify-resume", RECIPE, *FEW, "--cuts", 1, "--device", "cpu").splitlines()[-1] == "bit-equal"


def test_a_plan_says_that_it_cannot_count_what_depends_on_lengths(heedful):
    _, *lines = heedful("plan", RECIPE, *FEW).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["ddp", "fsdp", "fsdp, recomputing"]
    assert all(line.endswith("reads values, and a plan has none") for line in lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model.encoder.heads=2"], "gru_reader has nothing that model.encoder.heads could change"),
        (
            ["model.decoder.family=gru_reader"],
            "family=gru_reader is no decoder; choose one",
        ),
        (["model.encoder.vocab=7"], "model.encoder.vocab=7 contradicts the data"),
        (
            ["model.family=gpt"],
            "gpt cannot learn task 'recurrent-translation'; set model.family=composite",
        ),
    ],
)
def test_bad_input_is_refused_in_a_sentence(heedful, words, said, tmp_path):
    (line,) = heedful("train", RECIPE, *words, "--out", tmp_path / "run", status=2).splitlines()
    assert said in line and "; " in line
