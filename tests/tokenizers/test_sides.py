"""Marian's two sides over one vocabulary give the ids that transformers gives."""

import json
import warnings

import pytest
import sentencepiece

import heedful
from heedful.errors import Refusal
from heedful.tokenizers import hf_folders
from tests.tokenizers.corpus import TEXTS


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
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    return folder


def in_transformers(folder):
    from transformers import AutoTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it would rather have sacremoses
        return AutoTokenizer.from_pretrained(folder)


def test_a_folder_of_marians_is_read_as_transformers_reads_it(marian):
    ours, theirs = hf_folders.read_folder(marian), in_transformers(marian)
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
    heedful.save(model, tmp_path / "again", layout="hf")
    assert heedful.load(tmp_path / "again").tokenizer.encode(TEXTS[0]) == model.tokenizer.encode(TEXTS[0])
    theirs = in_transformers(tmp_path / "again")
    assert theirs(TEXTS[0])["input_ids"] == [*model.tokenizer.encode(TEXTS[0]), 0]


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
        hf_folders.read_folder(tmp_path)
