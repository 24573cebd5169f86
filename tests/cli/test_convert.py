"""`heedful convert`: a model from one layout to the other, and back to the same bytes."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

import heedful as library
from heedful.models.canonical import meaning
from heedful.tokenizers import Tokenizer
from heedful.training.optimiser import optimiser_of
from heedful.training.spec.training_spec import TrainingSpec
from tests.cli.conftest import Program

TEXT = "the cat sat on the mat and the dog sat on the cat"


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A GPT that was taught a sentence here, with the tokenizer of its characters."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.of_characters([TEXT])
    model = library.build("gpt", vocab=len(tokenizer), width=16, heads=2, depth=1, length=64, tied=False)
    tokens = torch.tensor([tokenizer.encode(TEXT)])
    optimiser = optimiser_of(model, TrainingSpec(rate=0.02))
    for _ in range(20):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(tokens[:, :-1])[0], tokens[0, 1:]).backward()
        optimiser.step()
    vars(model)["tokenizer"] = tokenizer
    library.save(model, tmp_path / "trained")
    return tmp_path / "trained"


def test_a_model_trained_here_is_read_by_transformers_with_equal_logits(heedful: Program, trained: Path) -> None:
    answer = heedful("convert", trained, trained.parent / "there", "--to", "hf")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == f"{trained.parent / 'there'}: gpt2, {4_848:,} weights\n"
    ours, theirs = library.load(trained), AutoModelForCausalLM.from_pretrained(trained.parent / "there")
    words = AutoTokenizer.from_pretrained(trained.parent / "there")
    ids = ours.tokenizer.encode(TEXT)
    assert words(TEXT)["input_ids"] == ids and words.eos_token == "<end>"
    with torch.no_grad():
        torch.testing.assert_close(ours(torch.tensor([ids])), theirs(torch.tensor([ids])).logits, rtol=0.0, atol=1e-5)


def test_there_and_back_are_the_same_weights(heedful: Program, trained: Path) -> None:
    there, back = trained.parent / "there", trained.parent / "back"
    assert heedful("convert", trained, there, "--to", "hf").status == 0
    assert heedful("convert", there, back, "--to", "heedful").out.endswith(": gpt, 4,848 weights\n")
    for name in ("model.safetensors", "tokenizer.json"):
        assert (back / name).read_bytes() == (trained / name).read_bytes()


def test_an_image_classifier_takes_its_names_and_its_scale_along(
    heedful: Program, workshop: Path, tmp_path: Path
) -> None:
    assert heedful("convert", "runs/vit", tmp_path / "there", "--to", "hf").err == ""
    said = pipeline("image-classification", model=str(tmp_path / "there"))("photos/class0/0.png")
    assert {one["label"] for one in said} == {"circle", "cross", "ring", "square", "triangle"}
    for folder in ("runs/vit", tmp_path / "there"):
        assert heedful("predict", folder, "photos/class0/0.png").lines == [said[0]["label"]]
    (tmp_path / "there" / "task.json").unlink()
    assert heedful("predict", tmp_path / "there", "photos/class0/0.png").lines == [said[0]["label"]]
    assert heedful("convert", tmp_path / "there", tmp_path / "back", "--to", "heedful").status == 0
    back, own = (meaning(library.load(folder).spec) for folder in (tmp_path / "back", "runs/vit"))
    told = "transformers(shorter=16, resample=3, crop_high=16, crop_wide=16)"  # as pictures are brought to a square
    assert back == own | {"processor": told}


def test_bad_calls_get_one_line_and_leave_nothing(heedful: Program, trained: Path) -> None:
    new = trained.parent / "new"
    for words, said in (
        ((trained, new, "--to", "hff"), "unknown layout 'hff'; did you mean 'hf'? known: heedful, hf"),
        ((trained, new, "--to", "heedful"), f"{trained} is in the layout 'heedful' already; copy the folder, or give"),
        ((trained, trained, "--to", "hf"), f"{trained} exists; choose another folder or remove it first"),
        ((trained.parent / "none", new, "--to", "hf"), f"{trained.parent / 'none'} does not exist; name a run folder"),
        ((trained, new), "missing option '--to'; `heedful convert --help` says how it is called"),
        ((trained, "--to", "hf"), "missing argument 'DST'; `heedful convert --help` says how it is called"),
        (("hub:a b", new, "--to", "hf"), "hub:a b is no name of the hub's; write hub:OWNER/NAME"),
    ):
        answer = heedful("convert", *words)
        assert (answer.status, answer.out) == (2, ""), words
        assert answer.err.startswith(f"heedful: {said}"), answer.err
    assert not new.exists()
