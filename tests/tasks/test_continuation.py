"""Continuing texts: crops judge each token once, packed texts do not mix, and scores are those of the definition."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import heedful
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import Stream
from heedful.errors import Refusal
from heedful.models import build
from heedful.models.specs import BEGIN, END, PAD, UNKNOWN
from heedful.objectives.next_token import blank_out
from heedful.tasks.text.cropping import CropLearned, crops
from heedful.tasks.text.language_modelling import TASK
from heedful.tasks.work import Work
from heedful.tokenizers import Tokenizer, train
from heedful.training import run
from tests.judging import judged

LETTERS = Tokenizer.of_characters("abc\n ")


def task(longest: int = 8, noise: float = 0.0) -> Work:
    return Work(TASK, CropLearned(LETTERS, longest=longest, noise=noise))


def stream(*found: str, room: int = 40) -> Stream:
    return Stream.of([Text(one, "here") for one in found], LETTERS, room)


def gpt(longest: int = 8) -> torch.nn.Module:
    torch.manual_seed(0)
    return build("gpt", vocab=len(LETTERS), width=16, depth=2, heads=2, length=longest).double().eval()


@given(st.lists(st.text("abc", min_size=1, max_size=20), min_size=1, max_size=4), st.integers(2, 9), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_crops_judge_every_token_once(found: list[str], longest: int, stride: int) -> None:
    step, own = min(stride, longest), stream(*found)
    found_in = crops(own, longest, step)
    judged = [at for one in found_in for at in range(one.start + longest - one.judged + 1, one.start + longest + 1)]
    assert [at for at in judged if at < own.count] == list(range(1, own.count))
    assert len(found_in) == 1 or found_in[-1].start + longest - one_before(found_in[-1].judged) < own.count


def one_before(judged: int) -> int:
    return judged - 1


@torch.no_grad()
@pytest.mark.parametrize("stride", [8, 3, 1])
def test_the_score_is_the_mean_over_all_tokens_given_what_stands_before_them(stride: int) -> None:
    model, own, asked = gpt(), stream("abcabccbaabcbcabacb"), task()
    scores = asked.score(model, crops(own, 8, stride))
    ids, total = torch.from_numpy(own.tokens(slice(own.count))), 0.0
    for at in range(1, own.count):
        first = 0 if at <= 8 else 8 + stride * -(-(at - 8) // stride) - 8  # of the crop that judges it
        chances = model(ids[None, first:at]).log_softmax(-1)[0, -1]
        total += float(chances[ids[at]])
    assert scores["log_likelihood"] == pytest.approx(total / (own.count - 1), abs=1e-9)
    assert scores["perplexity"] == pytest.approx(math.exp(-total / (own.count - 1)))
    assert scores["bits_per_character"] == pytest.approx(-total / math.log(2) / own.characters)


@torch.no_grad()
def test_texts_that_are_packed_are_scored_as_each_alone() -> None:
    model, asked = gpt(24), task(24)
    found = ["abca", "cba", "bb"]
    packed = stream(*found)
    loss, count = asked.loss(model, asked.batch(crops(packed, 24, 24)))
    position = 0
    alone, tokens = 0.0, 0
    for text in found:  # each where it stands, and nothing before it
        own = stream(text)
        ids = torch.from_numpy(own.tokens(slice(own.count)))
        places = torch.arange(position, position + own.count - 1)[None]
        logits = model(ids[None, :-1], positions=places)
        alone += float(torch.nn.functional.cross_entropy(logits[0], ids[1:], reduction="sum"))
        position, tokens = position + own.count, tokens + own.count - 1
    assert int(count) == tokens and float(loss) == pytest.approx(alone, abs=1e-9)


@torch.no_grad()
def test_padding_counts_nothing() -> None:
    model, asked = gpt(), task()
    batch = asked.batch(crops(stream("ab"), 8, 8))
    more = {name: torch.nn.functional.pad(tensor, (0, 0, 0, 3)) for name, tensor in batch.items()}
    one, two = asked.loss(model, batch), asked.loss(model, more)
    assert float(one[0]) == pytest.approx(float(two[0]), abs=1e-12) and int(one[1]) == int(two[1]) == 3


def test_crops_are_moved_from_epoch_to_epoch_and_follow_from_seed_epoch_and_place() -> None:
    asked, own = task(noise=0.5), stream("abc" * 40)
    found = crops(own, 8, 8)
    starts = [[one.start for one in asked.augmented(found, epoch)] for epoch in range(30)]
    assert len({row[0] for row in starts}) > 4 and max(map(max, starts)) + 8 < own.count
    assert all(np.diff(row[:-2]).tolist() == [8] * (len(row) - 3) for row in starts)
    assert asked.augmented(found, 3)[4] == asked.augmented(found[4:5], 3)[0]
    assert asked.augmented(found, 3)[4].dice != asked.augmented(found, 4)[4].dice


def test_noise_hides_its_share_while_learning_and_nothing_else() -> None:
    asked, own = task(noise=0.3), stream("abc" * 3000)
    found = crops(own, 8, 8)
    batch = asked.batch(asked.augmented(found, 1))
    hidden = blank_out(batch, 0.3) == UNKNOWN
    assert 0.27 < float(hidden.float().mean()) < 0.33
    assert torch.equal(blank_out(batch, 0.3)[~hidden], batch["tokens"][~hidden]) and not (batch["answer"] == 3).any()
    assert "dice" not in asked.batch(found)  # what is scored is read whole


def test_whole_words_end_their_lines_and_blanks_are_nothing() -> None:
    words = train(["a b c"], "words", size=20, digits="joined", punctuation="joined")
    own = Stream.of([Text(" \n a  b \n c <x> \n", "here")], words, 3)
    a, b, c = (words.encode(word)[0] for word in "abc")
    assert own.ids.tolist() == [BEGIN, END, a, b, END, c, UNKNOWN, END, PAD, PAD, PAD]


@torch.no_grad()
def test_two_passes_that_agree_are_one() -> None:
    model, asked = gpt(), task()
    batch = asked.batch(crops(stream("abcabc", "cc"), 8, 8))
    one, two = (judged(asked, model, batch, smoothing=0.1, consistency=consistency)[0] for consistency in (0.0, 2.0))
    assert float(one) == pytest.approx(float(two), abs=1e-9)


def test_a_stride_beyond_the_context_is_refused() -> None:
    with pytest.raises(Refusal, match=r"data\.stride=9 is beyond data\.longest=8"):
        TASK.open(TASK.reader("captions")(name="captions", samples=20, held_out=4, longest=8, stride=9), 1)


def test_a_model_is_asked_and_loaded_as_any_decoder(tmp_path: Path) -> None:
    from heedful.training.spec import recipes

    small = ["data=toy", "data.samples=200", "data.held_out=40", "data.longest=12", "training.steps=3"]
    spec = recipes.resolve("gpt-text", [*small, "model.position=learned"])
    run.train(spec, tmp_path / "run", False, torch.device("cpu"))
    model, own = run.load_trained(tmp_path / "run")
    assert own.name == "language-modelling" and type(heedful.load(tmp_path / "run" / "model")).__name__ == "GPT"
    asked = own.decoding.but(temperature=0.0, max_new_tokens=5)
    (found,) = own.best(model, ["The cat"], asked)
    assert found[0].text == heedful.generate(model, "The cat", 5)
    assert own.look(model, "The cat").maps[0].rows[0].strip() == "The"
