"""User-defined symbols of SentencePiece models: the ids that it gives, whatever its map of characters says of them."""

import io
import json
import random

import pytest
import sentencepiece

from heedful.errors import Refusal
from heedful.tokenizers import Tokenizer, hf_folders
from heedful.tokenizers.from_sentencepiece import convert
from heedful.tokenizers.sentencepiece.proto import parse
from tests.tokenizers.corpus import TEXTS
from tests.tokenizers.test_sentencepiece import UNK, rebuilt
from tests.tokenizers.test_sides import in_transformers

FULL = "\uff21"  # A at full width, which the map makes a plain one
CHANGED = [
    "\n",
    "\t",
    FULL,
    f"{FULL}B",
    "ﬁ",
    "½",
    "Å",
    "e\u0301",
    "a b",
    " x",
    "▁y",
    "q▁z",
    " ",
    "\u3000",
    "peo",
    "日本",
]
CHANGED += ["</s>x", "<", "|", "\\", ".", "(?i)", "[^", "@-@"]  # and what a pattern would take for something else
OVERLAPPING = ["\n\n", "\n\n\n", "▁▁", "▁▁▁", "ab", "bcd", "aa", "the", "heat", "▁the", "<0x4"]
WAYS = {
    "as usual": {},
    "no blank before": {"add_dummy_prefix": False},
    "blanks as they are": {"remove_extra_whitespaces": False},
    "bytes": {"byte_fallback": True, "vocab_size": 600, "normalization_rule_name": "nmt_nfkc_cf"},
    "nothing done": {
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
        "split_by_whitespace": False,
    },
}
AROUND = [*"abcdefhtxyz", FULL, " ", "  ", "▁", "\n", "\r\n", "\u0301", "é", "日", "<s>", "<unk>", "<0x41>", "people"]


def learned(kind: str, symbols: list[str], **how: object) -> bytes:
    """A model with symbols, by SentencePiece itself."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[-80:]),
        model_writer=made,
        model_type=kind,
        user_defined_symbols=symbols,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **{"vocab_size": 250} | how,
    )
    return made.getvalue()


def nasty(symbols: list[str], count: int) -> list[str]:
    """Texts in which symbols stand at the beginning, at the end, beside blanks and each other."""
    dice, pool = random.Random(0), [*symbols, *symbols, *AROUND, *TEXTS[:3]]
    mixed = ["".join(dice.choices(pool, k=dice.randrange(1, 9))) for _ in range(count)]
    return ["", *symbols, *(f"{symbol} a {symbol}" for symbol in symbols), *mixed]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_symbols_have_the_ids_that_sentencepiece_gives(kind, way, tmp_path):
    symbols = CHANGED + ([] if kind == "unigram" else OVERLAPPING)
    data = learned(kind, symbols, **WAYS[way])
    (tmp_path / "a.model").write_bytes(data)
    Tokenizer.read(tmp_path / "a.model").write(tmp_path / "a.json")
    theirs, texts = sentencepiece.SentencePieceProcessor(model_proto=data), nasty(symbols, 150)
    for text, ids in zip(texts, Tokenizer.read(tmp_path / "a.json").encode_all(texts), strict=True):
        assert ids == theirs.encode(text), text


@pytest.mark.parametrize(
    ("symbols", "said"),
    [(["ab", "bcd"], "rounding would choose between them$"), (["<0x4"], "holds the beginning of a byte's name, <0$")],
)
def test_symbols_that_unigram_could_split_in_several_ways_are_refused(symbols, said, tmp_path):
    (tmp_path / "a.model").write_bytes(learned("unigram", symbols, **WAYS["bytes"]))
    with pytest.raises(Refusal, match=said):
        Tokenizer.read(tmp_path / "a.model")


def test_a_folder_of_llamas_keeps_its_line_breaks(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(learned("bpe", ["\n", "\t"]))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    made = hf_folders.read_folder(tmp_path)
    theirs = sentencepiece.SentencePieceProcessor(str(tmp_path / "tokenizer.model"))
    assert made.encode("a\nb\t\tc\n") == [1, *theirs.encode("a\nb\t\tc\n")]
    assert made.decode(made.encode("a\nb\t\tc\n")) == "a\nb\t\tc\n"


def test_beside_symbols_a_word_that_is_a_piece_is_merged_as_any_other():
    pieces = [*((sign, -9.0, 1) for sign in "▁abcd"), ("bc", -1.0, 1), ("ab", -2.0, 1), ("cd", -3.0, 1)]
    data = rebuilt(UNK, *pieces, ("abcd", -4.0, 1), ("@-@", 0.0, 4), trainer=b"\x18\x02", rules=b"\x18\x00")
    theirs, made = sentencepiece.SentencePieceProcessor(model_proto=data), Tokenizer(convert(parse(data)))
    assert theirs.encode("abcd@-@abcd", out_type=str) == ["a", "bc", "d", "@-@", "a", "bc", "d"]
    assert made.encode("abcd@-@abcd") == theirs.encode("abcd@-@abcd")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_marians_symbols_have_the_ids_that_transformers_gives_known_to_its_vocabulary_or_not(kind, tmp_path):
    tokens = ["</s>", "<unk>", ">>fra<<"]
    for name, symbols in (("source", ["\n", "\t", FULL, "peo", "a b", "ﬁ"]), ("target", ["\n", "zz"])):
        data = learned(kind, symbols)
        (tmp_path / f"{name}.spm").write_bytes(data)
        side = sentencepiece.SentencePieceProcessor(model_proto=data)
        tokens += [piece for piece in map(side.id_to_piece, range(3, len(side))) if piece not in tokens]
    left = [*tokens[:3], *(token for at, token in enumerate(tokens[3:]) if token not in ("\t", "peo") and at % 7)]
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "MarianTokenizer"}')
    for known in (tokens, left):
        (tmp_path / "vocab.json").write_text(json.dumps({token: at for at, token in enumerate([*known, "<pad>"])}))
        ours, theirs = hf_folders.read_folder(tmp_path), in_transformers(tmp_path)
        for text in nasty(["\n", "\t", FULL, "peo", "a b", "ﬁ", "zz", ">>fra<<", ">>x\ny<<"], 100):
            if "<s>" not in text and "<unk>" not in text:  # which transformers reads as what they are not here
                assert [*ours.encode(text), 0] == theirs(text)["input_ids"], text
