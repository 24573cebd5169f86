"""A captioner of sixty lines, in a package of one's own, is trained, scored, asked, looked into, kept and resumed."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import heedful as library
from heedful.errors import Refusal
from heedful.formats.weights import state
from heedful.training.trained_run import usable
from tests.outside.conftest import HERE, scores_of
from tests.outside.drawn_captions import CAPTIONS, scene

RECIPE = HERE / "captions.yaml"
FEW = ["data.samples=96", "data.held_out=8", "training.steps=14", "training.batch=8", "training.save_every=4",
       "training.evaluate_every=5", "training.log_every=3", "model.decoder.dropout=0.1"]  # fmt: skip
SHOWN = 40


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Images that nobody has seen, as files, with their captions."""
    place, random = tmp_path_factory.mktemp("images"), np.random.default_rng(99)
    made = {}
    for at in range(SHOWN):
        pixels, caption = scene(random)
        Image.fromarray(pixels.transpose(1, 2, 0)).save(place / f"{at}.png")
        made[place / f"{at}.png"] = caption
    return made


def test_a_captioner_is_sixty_lines():
    assert len((HERE / "captioner.py").read_text().splitlines()) <= 60


def test_captions_of_unseen_images_are_right_far_above_chance(trained, heedful):
    scores = scores_of(trained("captions"))
    assert scores["exact"] > 0.8 > 100 / CAPTIONS and scores["tokens"] > 0.9
    assert json.loads(heedful("eval", trained("captions")).splitlines()[-1])["exact"] == scores["exact"]


def test_files_are_captioned_in_every_way_that_a_model_which_writes_is_asked(trained, heedful, drawn):
    run = trained("captions")
    plain = heedful("predict", run, stdin="\n".join(map(str, drawn))).splitlines()
    right = [said == caption for said, caption in zip(plain, drawn.values(), strict=True)]
    assert sum(right) > 0.8 * SHOWN
    some = list(drawn)[:3]
    typed = [json.loads(line) for line in heedful("predict", run, *some, "--json").splitlines()]
    assert [one["kind"] for one in typed] == ["text"] * 3 and [one["text"] for one in typed] == plain[:3]
    assert heedful("predict", run, *some, "--stream").splitlines() == plain[:3]
    best = [line.split("\t") for line in heedful("predict", run, some[0], "--beams", 4, "--best", 3).splitlines()]
    assert len({text for text, _ in best}) == 3 and best[0][0] == plain[0]
    assert [float(score) for _, score in best] == sorted((float(score) for _, score in best), reverse=True)
    drawing = ["--temperature", 2.5, "--seed", 5]
    assert heedful("predict", run, some[0], *drawing) == heedful("predict", run, some[0], *drawing)


def test_each_word_shows_where_it_looks_over_the_image(trained, heedful, drawn, tmp_path):
    run, (path, caption) = trained("captions"), next(iter(drawn.items()))
    assert heedful("look", run, path, "--out", tmp_path / "seen.png").splitlines()[0] == f"{path.name} → {caption}"
    with Image.open(tmp_path / "seen.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 1000
    heedful("look", run, path, "--out", tmp_path / "seen.html")
    page = (tmp_path / "seen.html").read_text()
    over = json.loads(page.partition('<div class="over"><script type="application/json">')[2].partition("</script>")[0])
    assert [one["name"] for one in over["each"]][:-1] == caption.split()  # and the end
    heedful("look", run, path, "--layer", "decoder.decoder.blocks.0.cross", "--out", tmp_path / "seen.json")
    (map,) = json.loads((tmp_path / "seen.json").read_text())["maps"]
    assert map["columns"][:5] == ["0,0", "0,1", "0,2", "0,3", "1,0"] and len(map["columns"]) == 16


def test_each_shape_is_looked_at_where_it_is(trained, drawn):
    model, use = usable(trained("captions"))
    seen = [(caption.split(), use.look(model, path)) for path, caption in drawn.items()]
    right = [(words, example) for words, example in seen if example.name.endswith(" ".join(words))]
    assert len(right) > 0.8 * SHOWN
    beyond = {0: [], 1: []}  # how much of what the words of each shape look at lies on the far half of the image
    for words, example in right:
        (over,) = example.sections
        for shape, places in enumerate(((1, 2), (-3, -2))):  # a colour and a shape each; the end comes last
            weights = sum(over.weights[at][1] for at in places) / 2
            beyond[shape].append(float(weights[2:].sum() if "above" in words else weights[:, 2:].sum()))
    assert np.mean(beyond[0]) < 0.35 and np.mean(beyond[1]) > 0.65


def test_what_is_saved_is_loaded_to_the_same_bits_and_obeys_the_laws(trained, heedful, tmp_path):
    model = library.load(trained("captions"))
    library.save(model, tmp_path / "again")
    again = library.load(tmp_path / "again")
    assert type(again) is type(model) and again.spec == model.spec and again.spec.encoder.depths == [1, 1, 1]
    assert all(torch.equal(one, state(again)[name]) for name, one in state(model).items())
    said = heedful("check", trained("captions"))
    assert said.count("holds") == 4 and "FAILS" not in said


def test_an_encoder_begins_with_that_of_a_captioner_and_with_no_other(trained, heedful, tmp_path):
    begun = f"start.encoder={trained('captions')}"
    heedful("train", RECIPE, *FEW, begun, "training.freeze=[encoder]", "--out", tmp_path / "run", "--device", "cpu")
    ours, theirs = (state(library.load(run)) for run in (tmp_path / "run", trained("captions")))
    same = {name: torch.equal(ours[name], theirs[name]) for name in ours}
    assert all(same[name] for name in same if name.startswith("encoder.") and name.endswith(("weight", "bias")))
    assert not same["decoder.inputs.table.weight"]
    (line,) = heedful("train", RECIPE, begun, "model.encoder.width=8", "--out", tmp_path / "no", status=2).splitlines()
    assert "is [16, 3, 3, 3] there and [8, 3, 3, 3] here; set model.encoder.width=16" in line


def test_a_captioner_that_is_killed_goes_on_to_the_same_bits(heedful):
    assert heedful("verify-resume", RECIPE, *FEW, "--cuts", 1, "--device", "cpu").splitlines()[-1] == "bit-equal"


def test_a_task_that_says_other_things_of_the_data_than_a_part_of_the_model_is_refused(trained, tmp_path):
    folder = shutil.copytree(trained("captions") / "model", tmp_path / "model")
    (folder / "manifest.json").unlink()
    task = json.loads((folder / "task.json").read_text())
    for key, value in (("high", 24), ("channels", 1)):
        other = task | {"images": task["images"] | {key: value}}
        (folder / "task.json").write_text(json.dumps(other))
        with pytest.raises(Refusal, match=f"the task says {key}={value} and the model does not; copy"):
            usable(folder)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", RECIPE, "model.encoder.family=bert"], "model.encoder"),
        (["train", RECIPE, "model.encoder.depth=2"], "resnet has nothing that model.encoder.depth could change"),
        (["train", RECIPE, "model.decoder.family=gpt"], "is no decoder"),
        (["train", RECIPE, "model.family=transformer"], "cannot learn task 'captions'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(heedful, words, said, tmp_path):
    (line,) = heedful(*words, "--out", tmp_path / "run", status=2).splitlines()
    assert said in line and "; " in line


def test_an_image_that_cannot_be_read_is_refused_in_a_sentence(heedful, trained):
    (line,) = heedful("predict", trained("captions"), "no.png", status=2).splitlines()
    assert line == "heedful: input 1: no.png cannot be read: it does not exist; give the path of an image"
