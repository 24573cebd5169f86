"""Masked tokens: which are chosen, what becomes of them, and that words may be hidden as one."""

from typing import Any

import pytest
import torch

from heedful.data.sample_dice import dice_of
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import Stream
from heedful.errors import Refusal
from heedful.models import build
from heedful.models.specs import BEGIN, END, PAD
from heedful.objectives.masked_tokens import frame_crops, mask_tokens
from heedful.tasks.text.cropping import crops
from heedful.tasks.text.masked_lm import MASK, TASK, MaskedCrops
from heedful.tasks.work import Work
from heedful.tokenizers import train

WORDS = train(["a bb cc dd ee ff gg hh ii jj"], "characters", special=(MASK,))
LONG = "bb cc dd ee ff gg hh ii jj " * 400


def task() -> Work:
    return Work(TASK, MaskedCrops(WORDS, longest=34, noise=0.15))


def test_of_the_chosen_80_percent_are_masked_10_are_others_and_10_stay() -> None:
    tokens = torch.full((200, 500), 9)
    batch = {"tokens": tokens, "dice": torch.from_numpy(dice_of(1, 2, range(200)))}
    read, answer = mask_tokens(batch, 0.15, 4, 30)
    chosen = answer != PAD
    assert 0.145 < float(chosen.float().mean()) < 0.155 and (answer[chosen] == 9).all() and (read[~chosen] == 9).all()
    veiled, stayed = (float((read[chosen] == token).float().mean()) for token in (4, 9))
    assert 0.79 < veiled < 0.81 and 0.095 < stayed < 0.115  # one of the others may be the same
    others = read[chosen & (read != 4) & (read != 9)]
    assert set(others.tolist()) == set(range(5, 30)) - {9}
    alone = mask_tokens({name: tensor[7:8] for name, tensor in batch.items()}, 0.15, 4, 30)
    assert torch.equal(alone[0][0], read[7]) and torch.equal(alone[1][0], answer[7])


def test_what_is_no_text_is_never_chosen() -> None:
    tokens = torch.tensor([[BEGIN, 9, END, BEGIN, 9, PAD, PAD]]).repeat(50, 40)
    read, answer = mask_tokens({"tokens": tokens, "dice": torch.from_numpy(dice_of(0, 0, range(50)))}, 0.9, 4, 30)
    assert (answer[tokens <= END] == PAD).all() and torch.equal(read[tokens <= END], tokens[tokens <= END])


def test_words_are_hidden_as_one_where_that_is_asked() -> None:
    pieces = train([LONG], "bpe", size=262, special=(MASK,))
    learned = MaskedCrops(pieces, longest=34, noise=0.3, whole_words=True)
    own = Work(TASK, learned)
    stream = Stream.of([Text(LONG, "here")], pieces, 80, whole_words=True)
    batch = own.batch(crops(stream, learned.window, learned.window))
    _, answer = mask_tokens(batch, 0.3, pieces.special[MASK], len(pieces))
    chosen = (answer != PAD) & (batch["tokens"] > END)
    for row, words, ids in zip(chosen.tolist(), batch["words"].tolist(), batch["tokens"].tolist(), strict=True):
        found: dict[int, set[bool]] = {}
        for one, word, at in zip(row, words, ids, strict=True):
            if at > END:
                found.setdefault(word, set()).add(one)
        assert all(len(kinds) == 1 for kinds in found.values())
    assert len(set(batch["words"][0].tolist())) < learned.window and 0.25 < float(chosen.float().mean()) < 0.35


def test_crops_stand_between_begin_and_end_and_padding_is_last() -> None:
    whole, places = frame_crops(torch.tensor([[7, 8, 9], [7, PAD, PAD]]))
    assert whole.tolist() == [[BEGIN, 7, 8, 9, END], [BEGIN, 7, END, PAD, PAD]]
    assert places.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]]


def test_padding_changes_no_loss_and_scores_are_the_same_every_time() -> None:
    own = task()
    torch.manual_seed(0)
    model = build("bert", vocab=len(WORDS), width=16, depth=1, heads=2, length=34, output="masked").double().eval()
    stream = Stream.of([Text(LONG[:60], "here")], WORDS, 80)
    found = crops(stream, 32, 32)
    with torch.no_grad():
        batch = own.batch(found)
        more = {name: torch.cat((tensor, torch.zeros_like(tensor))) for name, tensor in batch.items()}
        one, two = own.loss(model, batch), own.loss(model, more)
    assert float(one[0]) == pytest.approx(float(two[0]), abs=1e-12) and int(one[1]) == int(two[1]) > 0
    assert own.score(model, found) == own.score(model, found)
    assert own.score(model, found)["log_likelihood"] == pytest.approx(-float(one[0]) / int(one[1]))


def test_nothing_hidden_and_words_of_words_are_refused() -> None:
    reader = TASK.reader("captions")
    small: dict[str, Any] = {"name": "captions", "samples": 30, "held_out": 8, "longest": 20}
    with pytest.raises(Refusal, match=r"data\.noise=0 leaves nothing to find"):
        TASK.open(reader(**small, noise=0.0), 1)
    with pytest.raises(Refusal, match=r"data\.whole_words is for tokens that are parts of words"):
        TASK.open(reader(**small, tokenizer="words(size=200)", whole_words=True), 1)
    with pytest.raises(Refusal, match="leaves no room for a text"):
        TASK.open(reader(**small | {"longest": 3}), 1)
