"""Decoders that are asked for a class, tags or an answer: the numbers of transformers, from its folders and back."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.attention import standing
from heedful.errors import Refusal
from heedful.formats.layout_registry import layout_for
from heedful.formats.name_rules import rules_of
from tests.references.language import stirred

CLOSE = {"rtol": 0.0, "atol": 1e-5}
VOCAB, LENGTH = 23, 9
GPT2 = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": LENGTH}
LLAMA = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
LLAMA |= {"intermediate_size": 10, "max_position_embeddings": LENGTH, "head_dim": 6}
NUMBERS = {"GPT2": GPT2, "Llama": LLAMA, "Qwen3": LLAMA}
EVERY = [(stem, end) for stem in NUMBERS for end in ("SequenceClassification", "TokenClassification")]
EVERY += [("GPT2", "QuestionAnswering")]


def made(stem: str, end: str, **more: Any) -> nn.Module:
    """One of theirs, with weights that all matter."""
    import transformers

    said = {"num_labels": 2 if end == "QuestionAnswering" else 3, "pad_token_id": 0, "eos_token_id": 2} | more
    config = getattr(transformers, f"{stem}Config")(vocab_size=VOCAB, **NUMBERS[stem], **said)
    return stirred(getattr(transformers, f"{stem}For{end}")(config), 0.3)


def answer_of(said: Any) -> Tensor:
    return torch.stack((said.start_logits, said.end_logits), -1) if "start_logits" in said else said.logits


def batch(side: str) -> tuple[Tensor, Tensor]:
    """Tokens of two rows, one of them padded on a side, and which are there."""
    tokens = torch.randint(3, VOCAB, (2, 7), generator=torch.Generator().manual_seed(3))
    there = torch.ones_like(tokens, dtype=torch.bool)
    if side == "right":
        there[1, 4:] = False
    if side == "left":
        there[1, :4] = False
    return tokens.masked_fill(~there, 0), there


def same_gradients(ours: nn.Module, theirs: nn.Module, one: Tensor, two: Tensor) -> None:
    along = torch.randn(one.shape, generator=torch.Generator().manual_seed(1)) / 10
    (one * along).sum().backward()
    (two * along).sum().backward()
    named, wanted = dict(ours.named_parameters()), dict(theirs.named_parameters())
    rules = rules_of(named, layout_for(ours.spec)[0].table(ours.spec))
    assert {one for rule in rules.values() for one in rule.names} == wanted.keys()
    for name, rule in rules.items():
        found = rule.read([wanted[other].grad for other in rule.names])
        torch.testing.assert_close(named[name].grad, found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("stem", "end"), EVERY)
def test_answers_and_gradients_are_those_of_transformers(stem, end, tmp_path):
    theirs = made(stem, end)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = heedful.load(tmp_path / "theirs")
    for side in ("none", "left", "right"):
        tokens, there = batch(side)
        told = {"attention_mask": there.long(), "position_ids": standing(there).clamp(min=0)}
        one, two = ours(tokens), answer_of(theirs(tokens, **told))
        kept = there if one.dim() == 3 else slice(None)
        torch.testing.assert_close(one[kept], two[kept], **CLOSE)
        assert two.std() > 0.1
    same_gradients(ours, theirs, one[kept], two[kept])
    heedful.save(ours, tmp_path / "ours", layout="hf")
    again, lost = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(lost[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert torch.equal(answer_of(again.eval()(tokens, **told)), answer_of(theirs(tokens, **told)))


BART = {"d_model": 12, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 3, "encoder_ffn_dim": 10}
BART |= {"decoder_attention_heads": 2, "decoder_ffn_dim": 9, "max_position_embeddings": LENGTH}
NUMBERS |= dict.fromkeys(("Bart", "MBart"), BART | {"decoder_start_token_id": 2})


@pytest.mark.parametrize("stem", ["Bart", "MBart"])
@pytest.mark.parametrize("end", ["SequenceClassification", "QuestionAnswering"])
def test_an_encoder_decoder_is_asked_as_that_of_transformers_is(end, stem, tmp_path):
    theirs = made(stem, end)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = heedful.load(tmp_path / "theirs")
    for side in ("none", "right"):  # on the left, theirs counts padding among the positions
        tokens, there = batch(side)
        tokens[0, 2] = tokens[0, 6] = tokens[1, 1] = tokens[1, 3 if side == "right" else 5] = 2
        told = {"attention_mask": there.long()}
        one, two = ours(tokens), answer_of(theirs(tokens, **told))
        kept = there if one.dim() == 3 else slice(None)
        torch.testing.assert_close(one[kept], two[kept], **CLOSE)
        assert two.std() > 0.1
    left = torch.cat((tokens.new_zeros(2, 2), tokens), 1)
    moved = ours(left)
    torch.testing.assert_close((moved[:, 2:] if one.dim() == 3 else moved)[kept], one[kept], **CLOSE)
    same_gradients(ours, theirs, one[kept], two[kept])
    heedful.save(ours, tmp_path / "ours", layout="hf")
    again, lost = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(lost[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert torch.equal(answer_of(again.eval()(tokens, **told)), answer_of(theirs(tokens, **told)))
    with pytest.raises(Refusal, match=r"family 'bart' that is asked for .* does not write"):
        heedful.generate(ours, [3, 4, 2])


@pytest.mark.parametrize("family", ["gpt", "llama"])
@pytest.mark.parametrize("output", ["classes", "tags"])
def test_one_that_was_made_here_is_read_by_transformers(family, output, tmp_path):
    import transformers

    small = {"vocab": VOCAB, "width": 12, "heads": 2, "depth": 2, "length": 8, "labels": ["a", "b", "c"]}
    ours = stirred(heedful.build(family, **small, output=output, classes=3))
    heedful.save(ours, tmp_path / "ours", layout="hf")
    end = {"classes": "Sequence", "tags": "Token"}[output]
    kind = getattr(transformers, f"AutoModelFor{end}Classification")
    theirs = kind.from_pretrained(tmp_path / "ours").eval()
    tokens, there = batch("right")
    one, two = ours(tokens), theirs(tokens, attention_mask=there.long()).logits
    kept = there if output == "tags" else slice(None)
    torch.testing.assert_close(one[kept], two[kept], **CLOSE)
    assert theirs.config.id2label == {0: "a", 1: "b", 2: "c"}


def test_what_is_asked_in_a_way_that_no_file_tells_is_refused(tmp_path):
    small = {"vocab": VOCAB, "width": 12, "heads": 2, "depth": 1, "length": 8}
    with pytest.raises(Refusal, match=r"the layout 'llama' cannot say output='answer'"):
        heedful.save(heedful.build("llama", **small, output="answer"), tmp_path / "one", layout="hf")
    with pytest.raises(Refusal, match=r"unknown output 'masked'.*known: answer, classes, next, tags"):
        heedful.build("gpt", **small, output="masked")
    with pytest.raises(Refusal, match=r"model.output=classes needs to know among how many; give model.classes"):
        heedful.build("gpt", **small, output="classes")
    with pytest.raises(Refusal, match=r"family 'gpt' that is asked for classes does not write; generate is for one"):
        heedful.generate(heedful.build("gpt", **small, output="classes", classes=2), [3, 4])
