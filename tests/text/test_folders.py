"""The tokenizers of public folders give the ids that transformers gives: T5's sentinels, and Marian's two sides."""

import json
import warnings
from itertools import pairwise

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as some

import heedful
from heedful.errors import Refusal
from heedful.text import folders
from tests.text.corpus import TEXTS

MARKS = some.sampled_from([*"abc .", "<extra_id_0>", "<extra_id_3>", " <extra_id_1> "])


def learned(texts, path, size, **how):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_prefix=str(path.with_suffix("")),
        vocab_size=size,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **how,
    )
    path.with_suffix(".model").rename(path)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    folder = tmp_path_factory.mktemp("t5")
    learned(TEXTS[-200:], folder / "spiece.model", 400, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    (folder / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 5, "tokenizer_class": "T5Tokenizer"}))
    return folder


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    tokens = ["</s>", "<unk>", ">>fra<<"]
    for name, texts in (("source.spm", TEXTS[:200]), ("target.spm", TEXTS[-200:])):
        learned(texts, folder / name, 300)
        side = sentencepiece.SentencePieceProcessor(str(folder / name))
        pieces = [side.id_to_piece(at) for at in range(3, side.get_piece_size())]
        tokens += [piece for piece in pieces if piece not in tokens]
    tokens.append("<pad>")
    (folder / "vocab.json").write_text(json.dumps({token: at for at, token in enumerate(tokens)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}))
    return folder


def test_a_folder_of_t5_is_read_as_transformers_reads_it(t5):
    from transformers import T5Tokenizer

    ours, theirs = folders.read(t5), T5Tokenizer.from_pretrained(t5, extra_ids=5)
    assert len(ours) == len(theirs) == 405
    for text in TEXTS[:100]:
        ids = ours.encode(text)
        assert [*ids, 1] == theirs(text)["input_ids"]
        assert ours.decode(ids) == theirs.decode(ids, clean_up_tokenization_spaces=False)
    text = "Ein <extra_id_0> und<extra_id_4> ein"
    assert [*ours.encode(text), 1] == theirs(text)["input_ids"]
    assert ours.encode("<extra_id_0>", longest=1) == [404]


@settings(max_examples=50, derandomize=True, deadline=None, database=None)
@given(some.lists(MARKS).map("".join))
def test_a_blank_before_a_sentinel_belongs_to_it_and_no_other_is_lost(t5, text):
    ours = folders.read(t5)
    pieces = ours.pieces(ours.encode(text))
    assert not any(one == " " and two.startswith("<extra") for one, two in pairwise(pieces))
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_a_folder_of_marians_is_read_as_transformers_reads_it(marian):
    from transformers import MarianTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it would rather have sacremoses
        theirs = MarianTokenizer.from_pretrained(marian)
    ours = folders.read(marian)
    assert len(ours) == len(theirs)
    for text in [*TEXTS[:60], *TEXTS[-60:], ">>fra<< Hello there", "a >>fra<< b", ">>deu<< Hallo", "  two  spaces "]:
        ids = ours.encode(text)
        assert [*ids, 0] == theirs(text)["input_ids"], text
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    every = list(range(len(ours)))
    assert ours.decode(every[::-1]) == theirs.decode(every[::-1], skip_special_tokens=True)
    assert "".join(ours.stream(every)) == ours.decode(every)


def test_a_model_has_the_tokenizer_of_its_folder(marian, tmp_path):
    tokens = len(json.loads((marian / "vocab.json").read_text()))
    numbers = {"width": 16, "heads": 2, "depth": 1, "pad": tokens - 1, "begin": tokens - 1, "end": 0}
    heedful.save(heedful.build("marian", vocab=tokens, **numbers), tmp_path / "model", layout="hf")
    for name in ("source.spm", "target.spm", "vocab.json"):
        (tmp_path / "model" / name).write_bytes((marian / name).read_bytes())
    model = heedful.load(tmp_path / "model")
    assert len(model.tokenizer) == tokens
    assert isinstance(heedful.generate(model, TEXTS[0], max_new_tokens=5), str)


@pytest.mark.parametrize(
    ("vocab", "said"),
    [
        ("[1]", "vocab.json is no vocabulary: its ids do not count from 0 on"),
        ('{"a": 0, "b": 2}', "vocab.json is no vocabulary: its ids do not count from 0 on"),
        ('{"a": "0"}', "vocab.json is no vocabulary: its ids do not count from 0 on"),
        ('{"a": 0, "a": 1}', "vocab.json is no vocabulary: key 'a' stands there twice"),
        ('{"a": 0}', "target.spm is no tokenizer: it has 0 unknown tokens and not one"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(marian, tmp_path, vocab, said):
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes((marian / name).read_bytes())
    (tmp_path / "vocab.json").write_text(vocab)
    with pytest.raises(Refusal, match=said):
        folders.read(tmp_path)


@pytest.mark.parametrize(("settings", "said"), [('{"extra_ids": -1}', "extra_ids is '-1'"), ("{", "cannot be read")])
def test_settings_that_are_none_are_refused(t5, tmp_path, settings, said):
    (tmp_path / "spiece.model").write_bytes((t5 / "spiece.model").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(settings)
    with pytest.raises(Refusal, match=said):
        folders.read(tmp_path)
