"""Encoder-decoders that are written here, read by transformers: the same scores, and the same answers."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

import heedful
import heedful.tokenizers
from heedful.errors import Refusal
from tests.decoding.toys import greedy
from tests.references.encoder_decoders import CLASSES, KINDS, VOCAB, Asked, both, drawn, few
from tests.tokenizers.corpus import TEXTS

CLOSE = {"rtol": 0.0, "atol": 1e-5}
SMALL = {"vocab": VOCAB, "width": 12, "heads": 2, "depth": 2, "hidden": 20, "length": 16, "dropout": 0.1}


def read_by_transformers(model, folder):
    import transformers

    heedful.save(model, folder, layout="hf")
    theirs, told = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert not told["unexpected_keys"] and not told["mismatched_keys"]
    assert told["missing_keys"] <= {"model.shared.weight"}  # which nothing reads in a model that is not tied
    return theirs.eval()


def answers_alike(ours, theirs):
    asked = Asked.drawn(5, 7, ours.special.pad, left=False)
    with torch.no_grad():
        out = theirs(**asked.theirs()).logits
        torch.testing.assert_close(ours(asked.source, asked.target)[asked.written], out[asked.written], **CLOSE)
        rows = theirs.generate(
            input_ids=asked.source, attention_mask=asked.read.long(), max_new_tokens=9, num_beams=1, use_cache=False
        )
    end = ours.special.end
    for one, row in zip(greedy(ours, asked.source, 9), rows.tolist(), strict=True):
        assert list(one.tokens) == row[1 : row.index(end, 1) if end in row[1:] else None]


@pytest.mark.parametrize("kind", KINDS)
@few(1)
@given(data=some.data())
def test_what_was_read_is_written_and_read_by_transformers_alike(kind, data, tmp_path_factory):
    ours, _, _ = both(kind, *data.draw(drawn(kind)))
    theirs = read_by_transformers(ours, tmp_path_factory.mktemp("written") / "model")
    assert type(theirs).__name__ == CLASSES[kind]
    answers_alike(ours, theirs)


@pytest.mark.parametrize(
    ("family", "said", "kind"),
    [
        ("t5", {"tied": False, "scale_outputs": False}, "t5"),
        ("bart", {"first": 5}, "bart"),
        ("marian", {"source_vocab": VOCAB + 4}, "marian"),
        ("transformer", {"order": "post", "tied": False, "source_vocab": VOCAB + 2}, "marian"),
        ("transformer", {"order": "post", "tied": False, "feedforward": "gelu", "decoder_depth": 1}, "marian"),
        ("transformer", {"width": 14}, "pegasus"),
        ("transformer", {"tied": False}, "pegasus"),
    ],
)
def test_a_model_of_our_own_is_read_by_transformers(family, said, kind, tmp_path):
    torch.manual_seed(0)
    ours = heedful.build(family, **SMALL | said).eval()
    with torch.no_grad():
        for weight in ours.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    theirs = read_by_transformers(ours, tmp_path / "model")
    assert type(theirs).__name__ == CLASSES[kind]
    answers_alike(ours, theirs)
    again = heedful.load(tmp_path / "model")
    source, target = torch.randint(3, VOCAB, (2, 7)), torch.randint(3, VOCAB, (2, 5))
    torch.testing.assert_close(again(source, target), ours(source, target), **CLOSE)


def test_texts_of_a_model_of_our_own_are_read_and_written_alike(tmp_path):
    from transformers import AutoTokenizer

    torch.manual_seed(0)
    tokenizer = heedful.tokenizers.train(TEXTS[:200], "bpe", size=300)
    model = heedful.build("transformer", **SMALL | {"vocab": len(tokenizer), "width": 24, "length": 256}).eval()
    vars(model)["tokenizer"] = tokenizer
    theirs, reads = read_by_transformers(model, tmp_path / "model"), AutoTokenizer.from_pretrained(tmp_path / "model")
    again = heedful.load(tmp_path / "model")
    for text in TEXTS[:3]:
        given = reads(text, return_tensors="pt")
        ended = [*tokenizer.encode(text), model.special.end]
        assert given["input_ids"].tolist() == [ended] and [*again.tokenizer.encode(text), ended[-1]] == ended
        wrote = theirs.generate(input_ids=given["input_ids"], max_new_tokens=9, num_beams=1)
        answer = heedful.generate(model, text, max_new_tokens=9)
        assert (
            reads.decode(wrote[0], skip_special_tokens=True)
            == answer
            == heedful.generate(again, text, max_new_tokens=9)
        )
        assert answer


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({"position": "rotary"}, "the layout 'pegasus' cannot say position='rotary'"),
        ({"position": "learned", "order": "post"}, "the layout 'marian' cannot say position='learned'"),
        ({"bias": "alibi"}, "the layout 'pegasus' cannot say bias='alibi'"),
        ({"norm": "rms", "order": "post"}, "the layout 'marian' cannot say norm='rms'"),
        ({"groups": 1}, "cannot say groups=1"),
        ({"feedforward": "gated"}, "cannot say feedforward='gated'"),
        ({"mechanism": "window(size=3)"}, r"cannot say mechanism='window\(size=3\)'"),
        ({"mechanism": "additive"}, "cannot say mechanism='additive'"),
        ({"source_vocab": 40}, "the layout 'pegasus' cannot say vocab=29, source_vocab=40"),
    ],
)
def test_what_no_layout_says_is_refused_by_name(said, refused, tmp_path):
    model = heedful.build("transformer", **SMALL | said)
    with pytest.raises(Refusal, match=rf"{refused}.*; .*save it in the native layout"):
        heedful.save(model, tmp_path / "model", layout="hf")
