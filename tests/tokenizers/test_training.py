"""Training gives the same bytes from the same text, what was asked for, and a sentence where that cannot be."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from heedful.errors import Refusal
from heedful.tokenizers import KINDS, SPECIAL, Tokenizer, train, train_files
from heedful.tokenizers.training.learn import repeat_words
from heedful.tokenizers.training.unigram import rows, share_of
from tests.tokenizers.corpus import TEXTS, WHOLE, every, tokenizer

ROOT = Path(__file__).parents[2]
TRAIN = """
import sys
from heedful.tokenizers import train_files
for kind in sys.argv[3:]:
    train_files([sys.argv[1]], kind, 700, ["<User:>"]).write(f"{sys.argv[2]}/{kind}.json")
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(TEXTS), encoding="utf-8")
    return path


def test_training_twice_in_other_processes_gives_the_same_bytes(file, tmp_path):
    for seed in ("0", "1", "77"):
        (tmp_path / seed).mkdir()
        threads = {"0": "1", "1": "2", "77": "5"}[seed]
        around = os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads}
        subprocess.run([sys.executable, "-c", TRAIN, file, tmp_path / seed, *KINDS], check=True, cwd=ROOT, env=around)
    for kind in KINDS:
        assert len({(tmp_path / seed / f"{kind}.json").read_bytes() for seed in ("0", "1", "77")}) == 1, kind


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_texts_plays_no_part(kind):
    assert train(TEXTS[::-1], kind, 700).layout.text == train(TEXTS, kind, 700).layout.text


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_learnt_from_as_their_lines_are(kind, file, tmp_path):
    half = len(TEXTS) // 2
    (tmp_path / "a").write_text("\n".join(TEXTS[:half]), encoding="utf-8")
    (tmp_path / "b").write_text("\r\n".join(TEXTS[half:]) + "\r\n\r\n", encoding="utf-8", newline="")
    whole = train(TEXTS, kind, 700).layout.text
    assert train_files([file], kind, 700).layout.text == whole
    assert train_files([tmp_path / "a", tmp_path / "b"], kind, 700).layout.text == whole


def test_a_tokenizer_has_the_size_it_was_asked_for():
    for made in every():
        assert made.kind == "characters" or len(made) == 1000
        assert tuple(made.pieces(range(4))) == SPECIAL
        assert made.special == {name: at for at, name in enumerate((*SPECIAL, "<User:>", "<Assistant:>"))}


def test_a_text_with_less_to_learn_gives_fewer_tokens_and_says_so():
    for kind in ("words", "bpe", "bpe_characters", "wordpiece", "unigram"):
        said: list[str] = []
        made = train(["a man sees a man"] * 9, kind, 5000, said=said.append)
        assert said == [f"{len(made):,} tokens and not 5,000: there is no more to learn from this text"]
        assert made.decode(made.encode("a man sees a man")) == "a man sees a man"


@pytest.mark.parametrize("kind", ["words", "bpe", "bpe_characters", "wordpiece", "unigram"])
@pytest.mark.parametrize(
    ("digits", "punctuation", "words"),
    [
        ("joined", "joined", [" ab1984,", " 'tis", " 12.5%", " x"]),
        ("apart", "apart", [" ab", "1984", ",", " '", "tis", " 12", ".", "5", "%", " x"]),
        ("single", "apart", [" ab", "1", "9", "8", "4", ",", " '", "tis", " ", "1", "2", ".", "5", "%", " x"]),
        ("joined", "single", [" ab1984", ",", " '", "tis", " 12", ".", "5", "%", " x"]),
        ("apart", "joined", [" ab", "1984", ",", " 'tis", " 12", ".", "5", "%", " x"]),
    ],
)
def test_digits_and_punctuation_are_split_as_the_user_says(kind, digits, punctuation, words):
    made = train(TEXTS[-30:], kind, 600, digits=digits, punctuation=punctuation)
    cut = [word for word, _ in made.engine.pre_tokenizer.pre_tokenize_str(" ab1984, 'tis 12.5% x")]
    assert [word.replace("Ġ", " ") for word in cut] == words


def test_single_digits_are_learnt_alone():
    made = train(["in 1984 and 1985"] * 50, "bpe", 400, digits="single")
    assert made.pieces(made.encode("1984 1985")) == [" ", "1", "9", "8", "4", " ", "1", "9", "8", "5"]


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_are_not_learnt_from(kind):
    texts = ["say <User:> hello", "hello<end>", "<0x41>say"] * 50
    made = train(texts, kind, 400, ["<User:>"])
    learnt = "".join(made.pieces(range(5, len(made))))
    assert not {"User", "<User:>", "<end>"} & set(made.pieces(range(5, len(made))))
    assert "ser" not in learnt and ("<" not in learnt or kind in WHOLE)
    assert made.pieces(made.encode("say <User:> hello")).count("<User:>") == 1


def test_only_the_most_frequent_characters_are_learnt():
    texts = ["aaa bbb"] * 9 + ["ab z"]
    assert train(texts, "characters", 100, alphabet=3).pieces(range(4, 7)) == [" ", "a", "b"]
    for kind in ("wordpiece", "unigram"):
        made = train(texts, kind, 400, alphabet=3)
        assert not any("z" in piece for piece in made.pieces(range(4, len(made))))
        assert 3 in made.encode("z")
    made = train(texts, "bpe_characters", 400, alphabet=3)
    assert made.layout.known.keys().isdisjoint({"z", " z"})
    assert made.decode(made.encode("z")) == "z"


def test_bpe_merges_the_most_frequent_pair_first():
    made = train(["ab"] * 3 + ["cd"] * 5, "bpe_characters", 4 + 256 + 5 + 3)
    assert made.layout.model["merges"] == [[" ", "c"], [" c", "d"], [" ", "a"]]


def test_words_are_given_to_trainers_as_often_as_they_occur():
    counts = {"a": 200_000, "bc": 3, "d": 1}
    strings = list(repeat_words(counts, "|"))
    assert max(map(len, strings)) < 200_000
    assert Counter("".join(strings).split("|")) == Counter(counts | {"": 1})


def test_a_sample_of_words_gives_each_its_share():
    words = {"often": 10_000, "seldom": 100, "once": 1}
    assert Counter(rows(words, 1.0)) == Counter(words)
    assert share_of(words) == 1.0
    assert share_of(words, room=6_000) == pytest.approx(0.0989, abs=0.001)
    some = Counter(rows(words, 0.1))
    assert some["often"] == 1000 and some["seldom"] == 10 and some["once"] <= 1
    assert 60 < len(rows({str(number): 1 for number in range(1000)}, 0.1)) < 140


def test_equal_words_do_not_stand_side_by_side():
    assert max(len(run) for run in re.findall("a+|b+", "".join(rows({"a": 500, "b": 500}, 1.0)))) < 30


def test_what_unigram_did_not_get_to_see_is_known_by_its_characters():
    made = train([*TEXTS, "tab\there", "sign ▁ of ▅"], "unigram", 1000)
    for text in ("a\tb", "▁a", "e ▅"):
        assert made.decode(made.encode(text)) == text


NO_ROOM = "tokens come before any is learnt; give at least"
BAD = {
    "kind": ({"kind": "bpee"}, "unknown kind of tokenizer 'bpee'; did you mean 'bpe'? known: bpe, "),
    "digits": (
        {"digits": "singel"},
        "unknown way to split digits 'singel'; did you mean 'single'? known: apart, joined, single",
    ),
    "punctuation": ({"punctuation": ""}, "unknown way to split punctuation ''; known: apart, joined, single"),
    "digits of characters": (
        {"kind": "characters", "digits": "single"},
        "characters are always single; leave out digits=single",
    ),
    "no size": ({"size": 0}, "a size of 0 is no size for a vocabulary; give 1 to 1000000"),
    "endless size": ({"size": 10**12}, "a size of 1000000000000 is no size"),
    "size for bytes": ({"size": 200}, f"a size of 200 is too small: 260 {NO_ROOM} 260"),
    "size for words": ({"kind": "words", "size": 4}, f"a size of 4 is too small: 5 {NO_ROOM} 5"),
    "size for characters": (
        {"kind": "characters", "size": 5},
        f"a size of 5 is too small: 8 {NO_ROOM} 8, or a smaller alphabet",
    ),
    "size for both": ({"kind": "bpe_characters", "size": 262}, f"a size of 262 is too small: 264 {NO_ROOM} 264, or a"),
    "size for wordpiece": ({"kind": "wordpiece", "size": 10}, f"a size of 10 is too small: 12 {NO_ROOM} 12, or a"),
    "size for unigram": ({"kind": "unigram", "size": 8}, f"a size of 8 is too small: 9 {NO_ROOM} 9, or a"),
    "alphabet": ({"kind": "unigram", "alphabet": 0}, "an alphabet of 0: give at least 1"),
    "alphabet of bytes": ({"alphabet": 5}, "an alphabet of 5: bpe has no use for it, leave it out"),
    "empty": ({"special": [""]}, "special token '': it needs two characters or more"),
    "blank": (
        {"special": ["<a> "]},
        "special token '<a> ': it needs two characters or more, and no white space around them",
    ),
    "twice": ({"special": ["<a>", "<b>", "<a>"]}, "special token '<a>': it is given twice; give it once"),
    "ours": ({"special": ["<pad>"]}, "special token '<pad>': every tokenizer has it already; leave it out"),
    "a byte": ({"special": ["<0x41>"]}, "special token '<0x41>': pieces are written like that"),
    "half": ({"special": ["<\ud800>"]}, "special token '<\\ud800>': it holds half a character"),
    "a piece": (
        {"size": 400, "special": ["Ġab"]},
        "special token 'Ġab': pieces are written like that; choose another name",
    ),
}


@pytest.mark.parametrize("wrong", BAD)
def test_what_cannot_be_is_refused(wrong):
    how, said = BAD[wrong]
    with pytest.raises(Refusal, match=f"^{re.escape(said)}"):
        train(["ab ab c", "ab"], **how)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "characters"])
def test_nothing_cannot_be_learnt_from(kind):
    with pytest.raises(Refusal, match="there is no text to learn from"):
        train(["", "<pad>"], kind)


def test_the_smallest_sizes_work():
    for how, size in (({"kind": "wordpiece"}, 12), ({"kind": "unigram"}, 9), ({"kind": "bpe"}, 260)):
        made = train(["ab ab c", "ab"], size=size, **how)
        assert len(made) <= size
        assert made.decode(made.encode("ab c")) == "ab c"


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    made = tokenizer("bpe")
    made.write(tmp_path / "a.json")
    with pytest.raises(Refusal, match="there is no folder"):
        made.write(tmp_path / "none" / "a.json")
    (tmp_path / "b.json").mkdir()
    with pytest.raises(Refusal, match=r"b\.json is a folder"):
        made.write(tmp_path / "b.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]
    assert Tokenizer.read(tmp_path / "a.json").layout.text == made.layout.text


@pytest.mark.parametrize("kind", KINDS)
def test_with_small_letters_alone_it_learns_and_reads_what_small_ones_say(kind):
    shouted = [text.upper() for text in TEXTS]
    small = [text.lower() for text in shouted]
    made, plain = train(shouted, kind, 700, ["<User:>"], lower=True), train(small, kind, 700, ["<User:>"])
    assert made.layout.known == plain.layout.known
    assert made.encode_all(shouted) == plain.encode_all(small) == made.encode_all(small)
    said = "<User:> A Man Sleeps."
    assert made.encode(said) == plain.encode("<User:> a man sleeps.")
    assert made.layout.known["<User:>"] in made.encode(said)
