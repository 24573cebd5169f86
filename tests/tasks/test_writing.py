"""Encoder-decoders that were taught elsewhere are asked and looked into by their folder alone."""

import shutil

import pytest
import torch

import heedful
from heedful.decoding import Decoding
from heedful.errors import Refusal
from heedful.pipelines.writing import WRITING
from heedful.tokenizers import train
from heedful.training.trained_run import load_trained, usable
from tests.answered import plain
from tests.tokenizers.corpus import TEXTS

ASKED = [TEXTS[0], TEXTS[5], TEXTS[1]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = train(TEXTS[:200], "bpe", size=300)
    torch.manual_seed(0)
    ids = {"pad": 3, "begin": 0, "end": 2}
    model = heedful.build("marian", vocab=len(tokenizer), width=16, heads=2, depth=2, length=512, **ids)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0 if weight.dim() > 1 else 1.0)
    vars(model)["tokenizer"] = tokenizer
    place = tmp_path_factory.mktemp("elsewhere") / "model"
    heedful.save(model, place, layout="hf")
    return place


def test_it_answers_as_generate_does_and_in_pieces_and_with_beams(folder):
    model, use = usable(folder)
    assert use.pipeline is WRITING.pipeline and use.learned.special == model.special
    short = Decoding(max_new_tokens=8)
    answers = [found[0].text for found in use.best(model, ASKED, short)]
    assert answers == [heedful.generate(model, text, max_new_tokens=8) for text in ASKED]
    assert answers == ["".join(use.stream(model, text, short)) for text in ASKED]
    assert len(set(answers)) > 1 and all(answers)
    for text, found in zip(ASKED, use.best(model, ASKED, short.but(beams=3), best=2), strict=True):
        assert found[0].score >= found[1].score
        assert found[0].text == heedful.generate(model, text, max_new_tokens=8, beams=3)


def test_it_is_looked_into(folder):
    model, use = usable(folder)
    seen = use.searched_by(Decoding(max_new_tokens=4)).look(model, TEXTS[0])
    assert {map.path for map in seen.maps} >= {"encoder.blocks.0.attention", "decoder.blocks.1.cross"}
    assert seen.name.startswith(f"{TEXTS[0]} → ")


def test_in_our_own_layout_it_is_asked_the_same(folder, tmp_path):
    from heedful.formats import native

    native.convert(folder, tmp_path / "own", "heedful")
    (model, use), (other, same) = usable(folder), usable(tmp_path / "own")
    short = Decoding(max_new_tokens=5)
    assert list(use.best(model, ASKED, short)) == list(same.best(other, ASKED, short))


def test_what_cannot_be_asked_is_refused(folder, tmp_path):
    with pytest.raises(Refusal, match="was not trained here, so that nothing says how to score it"):
        load_trained(folder)
    model, use = usable(folder)
    with pytest.raises(Refusal, match="a text"):
        plain(use.predict(model, [" "]))
    assert use.warning("a" * 2000) and not use.warning("a")
    shutil.copytree(folder, tmp_path / "bare")
    (tmp_path / "bare" / "tokenizer.json").unlink()
    with pytest.raises(Refusal, match="has no tokenizer, without which no text can be read"):
        usable(tmp_path / "bare")
