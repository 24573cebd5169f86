"""Tokens that are spelt: words that share letters share what is known of them, those that nobody has seen too."""

import random
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import Refusal
from heedful.inputs import NoPosition, Sentences
from heedful.looking.attention_of_a_word import gaze
from heedful.tokenizers import Joined, train
from heedful.tokenizers.char_ngrams import LENGTHS, MOST, grams, ngrams_of
from heedful.tokenizers.encoding import mark_words
from heedful.training import run
from heedful.training.prepare import prepare
from heedful.training.trained_run import load_trained
from tests.answered import plain
from tests.tasks.test_classify import CPU, ROWS, rows, spec

SMALL = ("data.tokenizer=words", "model.width=32", "model.hidden=32", "model.depth=1", "model.dropout=0.0")


def texts(*many: tuple[str, ...], kind: str = "words") -> list[Joined]:
    return train((part for one in many for part in one), kind, size=320).join(list(many))


@given(st.text(min_size=1, max_size=30), st.integers(1, 50))
def test_a_word_has_the_n_grams_of_its_letters_up_to_so_many(word: str, size: int) -> None:
    found = {word[at : at + length] for length in LENGTHS for at in range(max(0, len(word) - length + 1))}
    numbers = grams(word, size)
    assert numbers.shape == (MOST,) and 0 <= numbers.min() <= numbers.max() <= size
    assert (numbers > 0).sum() == min(MOST, sum(max(0, len(word) - length + 1) for length in LENGTHS))
    last = [grams(one, size) for one in found]  # of which the last is the whole of it
    assert set(numbers[numbers > 0]) <= {one[one > 0][-1] for one in last}


def test_what_stands_for_no_text_is_not_spelt_and_marks_stand_where_words_begin_and_end() -> None:
    (one,) = texts(("the cats' mat", "a mat"))
    assert one.words == ["", "<the>", "<cats>", "<'>", "<mat>", "", "<a>", "<mat>", ""]
    made = ngrams_of([one, *texts(("mat",))], 1000)
    assert made.shape == (2, 9, MOST) and not made[:, 0].any() and not made[1, 3:].any()
    assert (made[0, 4] == made[1, 1]).all() and made[1, 1].any()
    assert (
        mark_words("a  cat", 1, 6),
        mark_words("cats", 0, 3),
        mark_words("cats", 3, 4),
        mark_words("a  b", 1, 3),
    ) == (
        "<cat>",
        "<cat",
        "s>",
        "",
    )


@pytest.mark.parametrize("kind", ["words", "bpe", "bpe_characters", "wordpiece", "unigram", "characters"])
def test_the_tokens_of_any_tokenizer_are_spelt_as_the_text_is(kind: str) -> None:
    text = "unlikely words, a likely word: likely"
    (one,) = texts((text,), kind=kind)
    behind, letters = 0, ""
    for word, (first, last) in zip(one.words, one.spans, strict=True):
        if word and first >= behind:  # what stands for the blank before a text is written as the letter behind it
            behind, letters = last, letters + word
    assert letters == "<unlikely><words><,><a><likely><word><:><likely>"


def test_what_letters_tell_is_the_sum_of_their_vectors_over_the_root_of_their_number(tmp_path: Path) -> None:
    ready = prepare(spec(rows(tmp_path), *SMALL, "model.letters=40", "training.dtype=float64"), CPU)
    inputs, batch = ready.model.inputs, ready.task.batch(ready.splits.train)
    made, table = inputs.spelt(batch["letters"]), inputs.letters.weight
    for row, letters in zip(made.flatten(0, 1), batch["letters"].flatten(0, 1), strict=True):
        there = letters[letters > 0]
        torch.testing.assert_close(row, table[there].sum(0) / max(1, len(there)) ** 0.5, rtol=1e-12, atol=1e-12)


def test_a_batch_of_spelt_texts_may_be_filled_up_and_means_what_its_texts_mean_one_by_one(tmp_path: Path) -> None:
    ready = prepare(spec(rows(tmp_path), *SMALL, "model.letters=40", "training.dtype=float64"), CPU)
    ready.model.eval()
    batch = ready.task.batch(ready.splits.train)
    wider = {name: torch.nn.functional.pad(one, (*(0, 3) * (one.dim() - 1), 0, 4)) for name, one in batch.items()}
    alone = sum(ready.task.loss(ready.model, ready.task.batch([one]))[0] for one in ready.splits.train)
    for given_batch in (batch, wider):
        torch.testing.assert_close(ready.task.loss(ready.model, given_batch)[0], alone, rtol=1e-12, atol=1e-12)
    blind = {name: one for name, one in batch.items() if name != "letters"}
    assert abs(ready.task.loss(ready.model, blind)[0] - alone) > 1e-6


def test_noise_hides_the_letters_of_what_it_hides_and_no_others(tmp_path: Path) -> None:
    ready = prepare(spec(rows(tmp_path, ROWS * 20), *SMALL, "model.letters=40", "data.noise=0.3"), CPU)
    plain = ready.task.batch(ready.splits.train)
    made = ready.task.batch(ready.task.augmented(ready.splits.train, 0))
    lost = made["tokens"] != plain["tokens"]
    assert lost.any() and not made["letters"][lost].any()
    assert torch.equal(made["letters"][~lost], plain["letters"][~lost])


def test_words_that_nobody_has_seen_are_told_by_their_letters(tmp_path: Path) -> None:
    dice = random.Random(3)
    stems = ["".join(dice.choices("bdgklmnprstvaeiou", k=5)) for _ in range(240)]
    for split, some in (("train", stems[:200]), ("valid", stems[200:220]), ("test", stems[220:])):
        lines = [
            f"it was {stem}{ending}\t{label}" for stem in some for ending, label in (("ful", "good"), ("less", "bad"))
        ]
        (tmp_path / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    words = (*SMALL, "training.steps=60", "training.batch=64", "training.rate=0.01", "training.warmup=5")
    scores = {}
    for letters in (0, 500):
        place = tmp_path / str(letters)
        result = run.train(spec(tmp_path, *words, f"model.letters={letters}"), place, False, CPU)
        scores[letters] = result["scores"]["accuracy"]
    assert scores[0] <= 0.6 and scores[500] >= 0.95
    model, task = load_trained(tmp_path / "500")
    assert plain(task.predict(model, ["it was zopgraful", "it was zopgraless"])) == ["good", "bad"]


@pytest.mark.parametrize(("letters", "told"), [(40, "hyenas"), (0, "<unknown>")])
def test_a_map_names_a_word_that_is_known_by_its_letters_as_it_is_spelt(
    tmp_path: Path, letters: int, told: str
) -> None:
    ready = prepare(spec(rows(tmp_path, ROWS * 20), *SMALL, f"model.letters={letters}"), CPU)
    example = ready.task.look(ready.model, "the hyenas sat")
    assert [word.strip() for word in example.maps[0].rows] == ["<begin>", "the", told, "sat", "<end>"]
    if letters:
        assert gaze(example.maps, told, "a text").columns == example.maps[0].columns


def test_who_knows_no_letters_refuses_them(tmp_path: Path) -> None:
    ready = prepare(spec(rows(tmp_path), *SMALL), CPU)
    with pytest.raises(Refusal, match="does not know letters"):
        ready.model(torch.ones(1, 2, dtype=torch.long), letters=torch.ones(1, 2, MOST, dtype=torch.long))


def test_a_model_without_letters_is_drawn_as_if_there_were_none_to_know() -> None:
    torch.manual_seed(0)
    made = Sentences(9, 16, NoPosition(), segments=2)
    after = torch.rand(3)
    torch.manual_seed(0)
    tables = torch.nn.Embedding(9, 16), torch.nn.Embedding(2, 16)
    for table in tables:
        torch.nn.init.normal_(table.weight, std=0.02)
    assert torch.equal(made.table.weight, tables[0].weight) and torch.equal(after, torch.rand(3))
