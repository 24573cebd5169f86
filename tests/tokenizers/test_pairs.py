"""One text or a pair with the tokens around them, and BERT's older vocabularies, as transformers reads them."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import Refusal
from heedful.tokenizers import hf_folders
from tests.tokenizers.corpus import anything, tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "the", "cat", "##s", "sat", "É", "e", "##e", "日", ".", "Cat", "a"]
TEXTS = ["the cats sat.", "The Cat sat É é", "日日 [MASK] cats", "", "xyz the"]


def older(folder, **said):
    """A folder as it was before there was a tokenizer.json."""
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    return folder


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("accents", [None, True, False])
def test_a_vocabulary_is_read_as_transformers_reads_it(tmp_path, lower, accents):
    from transformers import BertTokenizer

    said = {"do_lower_case": lower, "strip_accents": accents, "cls_token": {"content": "[CLS]"}}
    made = hf_folders.read_folder(older(tmp_path, **said))
    theirs = BertTokenizer({word: at for at, word in enumerate(WORDS)}, do_lower_case=lower, strip_accents=accents)
    assert made.encode_all(TEXTS) == [theirs(text)["input_ids"] for text in TEXTS]
    for pair in itertools.pairwise(filter(None, TEXTS)):  # an empty second one is none to transformers
        for longest in (None, 6):
            ours = made.join([pair], longest)[0]
            other = theirs(*pair, truncation=longest is not None, max_length=longest)
            assert (ours.ids, ours.segments) == (other["input_ids"], other["token_type_ids"])
    assert made.decode(made.encode("the cats sat")) == "the cats sat"


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(anything, min_size=1, max_size=2), longest=st.none() | st.integers(3, 9))
def test_every_token_of_a_pair_tells_where_it_is_from(tmp_path_factory, texts, longest):
    made = hf_folders.read_folder(older(tmp_path_factory.mktemp("vocabulary"))).join([tuple(texts)], longest)[0]
    assert len(made.ids) <= (longest or len(made.ids))
    assert made.sides.count(-1) == 1 + len(texts) and made.segments == sorted(made.segments)
    for side, (start, end) in zip(made.sides, made.spans, strict=True):
        assert side == -1 or 0 <= start < end <= len(made.texts[side])
    assert made.texts == tuple(texts)


def test_one_text_alone_has_the_ids_it_has_without_the_rest(tmp_path):
    made = hf_folders.read_folder(older(tmp_path))
    assert [one.ids for one in made.join([(text,) for text in TEXTS])] == made.encode_all(TEXTS)


def test_a_pair_cannot_be_shorter_than_what_is_added(tmp_path):
    made = hf_folders.read_folder(older(tmp_path))
    assert len(made.join([("the", "cat")], 3)[0].ids) == 3
    with pytest.raises(Refusal, match="longest=2 is less than the 3 tokens that this tokenizer adds to a text"):
        made.join([("the", "cat")], 2)


def test_a_tokenizer_of_ours_puts_its_own_tokens_around_one_text_and_between_two():
    own = tokenizer("wordpiece")
    a, b = own.encode("a"), own.encode("b")
    assert own.join([("a",)])[0].ids == [1, *a, 2]
    pair = own.join([("a", "b")])[0]
    assert pair.ids == [1, *a, 2, *b, 2] and pair.segments == [0, 0, 0, 1, 1]
    with pytest.raises(Refusal, match="longest=2 leaves no room"):
        own.join([("a", "b")], 2)
