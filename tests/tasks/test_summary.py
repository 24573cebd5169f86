"""Summaries: ROUGE as its program has it, and any encoder-decoder goes on learning with its own tokens."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

import heedful
from heedful import tokenizers as text
from heedful.metrics import rouge
from heedful.tasks.text.summarisation import SummaryLearned
from heedful.training import run
from heedful.training.prepare import prepare
from heedful.training.spec import recipes
from heedful.training.trained_run import load_trained
from tests.tokenizers.corpus import TEXTS

CPU = torch.device("cpu")
words = st.lists(st.sampled_from("abcd"), max_size=7)


def test_rouge_is_what_the_package_rouge_score_says_of_its_own_example() -> None:
    known, said = "The quick brown fox jumps over the lazy dog", "The quick brown dog jumps on the log."
    found = rouge.rouge(said, known)
    assert found["rouge_1"] == pytest.approx(0.7058823529411765)
    assert found["rouge_l"] == pytest.approx(0.5882352941176471)
    assert found["rouge_2"] == pytest.approx(2 * 2 / (7 + 8))  # the quick, quick brown
    assert rouge.rouge("", known) == rouge.rouge(said, "") == dict.fromkeys(rouge.NAMES, 0.0)
    assert rouge.mean([rouge.rouge(known, known), rouge.rouge("", known)]) == dict.fromkeys(rouge.NAMES, 0.5)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The QUICK_brown fox's 2 legs", ["the", "quick", "brown", "fox", "s", "2", "legs"]),
        ("Größe, Straße!", ["größe", "straße"]),
        ("Глеб поехал в Осло.", ["глеб", "поехал", "в", "осло"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("我喜歡 tea。", ["我", "喜", "歡", "tea"]),
    ],
)
def test_words_are_found_in_any_script(text: str, parts: list[str]) -> None:
    assert rouge.words(text) == parts
    assert rouge.rouge(text, text) == dict.fromkeys(rouge.NAMES, 1.0)


@given(words, words)
def test_the_longest_row_is_the_longest_of_all(one: list[str], two: list[str]) -> None:
    def rows(text: list[str]) -> set[tuple[str, ...]]:
        found: set[tuple[str, ...]] = {()}
        for word in text:
            found |= {(*row, word) for row in found}
        return found

    assert rouge.longest(one, two) == max(map(len, rows(one) & rows(two)))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian whose special tokens are not where ours are."""
    tokenizer = text.train(TEXTS[:200], "bpe", size=300)
    torch.manual_seed(0)
    ids = {"pad": 3, "begin": 0, "end": 2}
    model = heedful.build("marian", vocab=len(tokenizer) + 5, width=16, heads=2, depth=1, length=512, **ids)
    vars(model)["tokenizer"] = tokenizer
    place = tmp_path_factory.mktemp("elsewhere") / "model"
    heedful.save(model, place, layout="hf")
    return place


def spec(place: Path, start: Path, *changes: str) -> recipes.RunSpec:
    for at, split in enumerate(("train", "valid", "test")):
        lines = (f"{text}\t{text[:20]}" for text in TEXTS[6 * at : 6 * at + 6])
        (place / f"{split}.tsv").write_text("\n".join(lines))
    named = [f"data.{split}={place / split}.tsv" for split in ("train", "valid", "test")]
    return recipes.resolve("summarise", [*named, f"start={start}", "training.threads=1", *changes])


def test_a_model_from_elsewhere_learns_with_its_own_special_tokens(tmp_path: Path, elsewhere: Path) -> None:
    ready = prepare(
        spec(tmp_path, elsewhere, "training.dtype=float64", "model.dropout=0.0", "objective.smoothing=0"), CPU
    )
    assert ready.model.spec.family == "marian" and ready.model.spec.vocab == len(ready.task.tokenizer) + 5
    one = min(ready.splits.train, key=lambda sample: len(sample.source))
    batch = ready.task.batch([one, max(ready.splits.train, key=lambda sample: len(sample.source))])
    assert batch["source"][0, -1] == 3 and batch["target"][0, 0] == 0 and 2 in batch["answer"][0]
    ready.model.eval()
    loss, count = ready.task.loss(ready.model, ready.task.batch([one]))
    scores = ready.model(torch.tensor([[*one.source, 2]]), torch.tensor([[0, *one.target]]))[0]
    torch.testing.assert_close(loss, cross_entropy(scores, torch.tensor([*one.target, 2]), reduction="sum"))
    assert int(count) == len(one.target) + 1


def test_what_was_learned_from_elsewhere_is_kept_and_scored_the_same(tmp_path: Path, elsewhere: Path) -> None:
    short = ["training.steps=2", "training.warmup=1", "decoding.beams=1", "decoding.max_new_tokens=4"]
    asked = spec(tmp_path, elsewhere, *short)
    result = run.train(asked, tmp_path / "run", False, CPU)
    model, task = load_trained(tmp_path / "run")
    assert isinstance(task.learned, SummaryLearned) and task.learned.special.pad == 3
    assert task.score(model, task.reopen(asked.data, asked.seed).test) == result["scores"]
