"""Conversations: only answers are learned, the tokens are those that `chat` writes, and any decoder can begin."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

import heedful
from heedful import tokenizers
from heedful.data.formats.chat_jsonl import read_dialogues
from heedful.decoding import Decoding
from heedful.decoding.chat_template import Chat
from heedful.errors import Refusal
from heedful.formats import native
from heedful.training import run
from heedful.training.loop import Loop
from heedful.training.prepare import prepare
from heedful.training.spec import recipes
from heedful.training.trained_run import load_trained

CPU = torch.device("cpu")
TURNS = [("who is there", "the cat"), ("where", "on the mat")]
ROLES = ("user", "assistant")
MESSAGES = [{"role": role, "content": said} for turn in TURNS for role, said in zip(ROLES, turn, strict=True)]


def spec(place: Path, *changes: str) -> recipes.RunSpec:
    for split in ("train", "valid", "test"):
        (place / f"{split}.jsonl").write_text(json.dumps({"messages": MESSAGES}) + "\n")
    named = [f"data.{split}={place / split}.jsonl" for split in ("train", "valid", "test")]
    small = ["model.width=16", "model.depth=1", "model.heads=2", "training.steps=2", "training.graphs=false"]
    start = any(change.startswith("start") for change in changes)
    return recipes.resolve("chat-text", [*named, *(small[3:] if start else small), "data.tokenizer=words", *changes])


def test_answers_and_their_ends_are_learned_and_nothing_else(tmp_path: Path) -> None:
    ready = prepare(spec(tmp_path, "training.dtype=float64", "model.dropout=0.0"), CPU)
    (one,) = ready.splits.train
    pieces = [piece.strip() for piece in ready.task.tokenizer.pieces(one.ids)]
    asked, more = ["<User:>", "who", "is", "there", "<Assistant:>"], ["<User:>", "where", "<Assistant:>"]
    told = [*asked, "the", "cat", *more, "on", "the", "mat", "<User:>"]
    assert pieces == told
    learned = [piece for piece, answer in zip(pieces, one.answer, strict=True) if answer]
    assert learned == ["the", "cat", "<User:>", "on", "the", "mat", "<User:>"]
    ready.model.eval()
    batch = ready.task.batch([one])
    loss, count = ready.task.loss(ready.model, batch)
    places = [at for at, answer in enumerate(one.answer) if answer]
    scores = ready.model(torch.tensor([one.ids]))[0, [at - 1 for at in places]]
    torch.testing.assert_close(loss, cross_entropy(scores, torch.tensor(one.ids)[places], reduction="sum"))
    assert int(count) == 7
    wider = {name: torch.nn.functional.pad(part, (0, 3, 0, 2)) for name, part in batch.items()}
    torch.testing.assert_close(ready.task.loss(ready.model, wider)[0], loss)


def test_a_run_chats_as_it_answers(tmp_path: Path) -> None:
    run.train(spec(tmp_path), tmp_path / "run", False, CPU)
    model, task = load_trained(tmp_path / "run")
    how = Decoding(max_new_tokens=5)
    said = "".join(Chat(model, how).say("where is the cat"))
    assert said == next(iter(task.best(model, ["where is the cat"], how)))[0].text
    assert said == "".join(task.stream(model, "where is the cat", how))
    with pytest.raises(Refusal, match="input 2: the input is empty; give what a user says"):
        list(task.predict(model, ["where", " "]))


def test_a_decoder_that_knows_no_roles_learns_the_tokens_of_them(tmp_path: Path) -> None:
    tokenizer = tokenizers.train(["who is there the cat sat on a mat"] * 3, "bpe", size=270)
    model = heedful.build("gpt", vocab=len(tokenizer), width=16, heads=2, depth=1, length=64)
    vars(model)["tokenizer"] = tokenizer
    heedful.save(model, tmp_path / "gpt")
    ready = prepare(spec(tmp_path, f"start={tmp_path / 'gpt'}", f"data.tokenizer={tmp_path / 'gpt'}"), CPU)
    rows = len(tokenizer)
    assert ready.model.spec.vocab == rows + 2 == len(ready.task.tokenizer)
    assert torch.equal(ready.model.inputs.table.weight[:rows], native.load(tmp_path / "gpt").inputs.table.weight)
    assert ready.task.learned.script.ends == (rows,)
    assert ready.task.tokenizer.encode("the cat") == tokenizer.encode("the cat")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "write"),
        ([{"role": "user", "content": " "}, MESSAGES[1]], "write"),
        ([MESSAGES[1]], "message 1 is of 'assistant' and should be of 'user'"),
        (MESSAGES[:3], "the last message has no answer"),
        ("hello", "write"),
    ],
)
def test_what_is_no_conversation_is_refused(tmp_path: Path, messages: Any, said: str) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": messages}))
    with pytest.raises(Refusal) as refused:
        read_dialogues(str(tmp_path / "a.jsonl"))
    assert f"a.jsonl, line 1: {said}" in str(refused.value)


def test_what_a_system_says_stands_before_the_first_turn(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": [{"role": "system", "content": "be brief"}, *MESSAGES]}))
    (one,) = read_dialogues(str(tmp_path / "a.jsonl"))
    assert one.turns == (("be brief\nwho is there", "the cat"), TURNS[1])


def test_of_a_long_conversation_the_end_is_learned_where_the_answers_are(tmp_path: Path) -> None:
    whole = prepare(spec(tmp_path), CPU)
    (one,) = whole.splits.train
    ready = prepare(spec(tmp_path, f"model.length={len(one.ids) - 5}", "data.too_long=cut"), CPU)
    (cut,) = ready.splits.train
    begun = len(ready.task.learned.script.begun)
    assert len(cut.ids) == len(one.ids) - 4
    assert (cut.ids[begun:], cut.answer[begun:]) == (one.ids[begun + 4 :], one.answer[begun + 4 :])
    assert cut.ids[:begun] == one.ids[:begun] and cut.answer[-1]


def test_a_step_of_which_nothing_is_judged_moves_nothing_by_it(tmp_path: Path) -> None:
    ready = prepare(spec(tmp_path, "training.weight_decay=0", "training.steps=3"), CPU)
    loop = Loop(ready.run, ready.task, ready.splits, ready.model, tmp_path)
    portion = loop.portions.at(0)
    for batch in portion.batches:
        batch["answer"].zero_()
    before = [weight.clone() for weight in ready.model.parameters()]
    assert float(loop.step(portion)) == 0.0
    assert all(map(torch.equal, before, ready.model.parameters()))
