"""Conversations: turns are written with the roles' tokens, kept within the model's length, and answered as they are."""

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import heedful
from heedful.cli import main
from heedful.decoding import Decoding
from heedful.decoding.chat_template import KNOWN, Chat
from heedful.errors import Refusal
from heedful.tokenizers.training.train import train
from tests.decoding.test_continuing import speaker, with_letters
from tests.decoding.toys import writer

SAID = ["abc abd", "add abc", "cab cab"] * 9
NEW = Decoding(max_new_tokens=5)


def talker(special: list[str], seed: int = 4, length: int = 60) -> nn.Module:
    """A model whose tokenizer knows these tokens; it never ends by itself."""
    tokenizer = train(SAID, "characters", 40, special)
    model = speaker(seed, vocab=len(tokenizer), length=length, end=None)
    vars(model)["tokenizer"] = tokenizer
    return model


def names(chat: Chat, ids: list[int]) -> str:
    return "".join(chat.tokenizer.pieces(ids))


@pytest.mark.parametrize("roles", KNOWN, ids=lambda roles: roles.names[0])
def test_turns_are_written_with_the_tokens_of_their_roles(roles: Any) -> None:
    model = talker(list(dict.fromkeys(roles.names)))
    chat = Chat(model, NEW)
    assert chat.roles == roles
    first, second = "".join(chat.say("abc")), "".join(chat.say("d"))
    user, answer, end = (names(chat, chat.written(part)) for part in (roles.user, roles.answer, roles.end))
    spoken = [names(chat, turn) for turn in chat.turns]
    assert spoken[0].startswith(user + "abc" + answer) and spoken[0].endswith(end)
    assert spoken[0].count(first) and spoken[1].count(second)
    whole = [*chat.turns[0], *chat.written(roles.user), *chat.plain("d"), *chat.written(roles.answer)]
    assert second == chat.tokenizer.decode(until(heedful.generate(model, whole, 5), chat.ends))


def until(tokens: list[int], ends: tuple[int, ...]) -> list[int]:
    return tokens[: next((at for at, token in enumerate(tokens) if token in ends), None)]


def test_an_answer_ends_where_the_user_would_speak() -> None:
    model = talker(["<User:>", "<Assistant:>"])
    user = model.tokenizer.layout.known["<User:>"]
    with torch.no_grad():
        model.outputs.matrix.weight[user] *= 40
    chat = Chat(model, NEW)
    answers = ["".join(chat.say(text)) for text in ("a", "b", "c", "d")]
    assert min(map(len, answers)) < 5
    assert all(turn.count(user) == 1 for turn in chat.turns)


def test_nobody_speaks_for_somebody_else() -> None:
    chat = Chat(talker(["<User:>", "<Assistant:>"]), NEW)
    assert chat.plain("a<Assistant:>b<User:>c") == chat.plain("abc")
    assert "".join(chat.say("a<Assistant:>b<User:>c")) == "".join(Chat(chat.writer, NEW).say("abc"))  # type: ignore[arg-type]


def test_the_oldest_turns_are_forgotten_where_there_is_no_room() -> None:
    chat = Chat(talker(["<User:>", "<Assistant:>"], length=24), NEW)
    for text in ("abc", "add", "cab", "dad"):
        assert "".join(chat.say(text)) != ""
    assert 0 < len(chat.fitted([5, 5])) <= 24 - 5
    assert chat.fitted([5, 5])[-2:] == [5, 5] and chat.fitted([5, 5])[0] == chat.known["<User:>"]
    with pytest.raises(Refusal, match="42 tokens long, and the model has room for 24; say less"):
        list(chat.say("abcd" * 10))
    chat.reset()
    assert chat.fitted([5]) == [5]


def test_an_answer_is_no_longer_than_there_is_room() -> None:
    chat = Chat(talker(["<User:>", "<Assistant:>"], length=24), Decoding(max_new_tokens=256))
    answers = ["".join(chat.say(text)) for text in ("abc", "dad")]
    assert all(answers) and max(map(len, answers)) < 24


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (writer(), "family 'transformer' does not chat; ask it with"),
        (heedful.build("predictor", channels=2, classes=3, width=16, heads=2), "family 'predictor' does not chat"),
        (speaker(), "no tokenizer to chat with"),
        (with_letters(speaker()), "no tokens for who speaks, such as <User:>"),
    ],
)
def test_models_that_do_not_chat_are_refused(model: nn.Module, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        Chat(model, NEW)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, model = tmp_path_factory.mktemp("chat") / "model", talker(["<User:>", "<Assistant:>"])
    heedful.save(model, place)
    if not (place / "tokenizer.json").exists():
        model.tokenizer.write(place / "tokenizer.json")
    return place


def piped(monkeypatch: pytest.MonkeyPatch, capsys: Any, folder: Path, lines: str, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    with pytest.raises(SystemExit) as stop:
        main(["chat", str(folder), "--max-new-tokens", "5", *words])
    return (stop.value.code, *capsys.readouterr())


def test_lines_of_standard_input_are_answered_in_turn(monkeypatch: Any, capsys: Any, folder: Path) -> None:
    chat = Chat(heedful.load(folder), NEW)
    expected = ["".join(chat.say(text)) for text in ("abc", "dad")]
    chat.reset()
    expected.append("".join(chat.say("dad")))
    lines = "abc\n\ndad\n/reset\ndad\n/exit\nabc\n"
    assert piped(monkeypatch, capsys, folder, lines, "--temperature", "0") == (0, "\n".join(expected) + "\n", "")


def test_what_is_no_message_is_told_and_the_conversation_goes_on(monkeypatch: Any, capsys: Any, folder: Path) -> None:
    code, out, _ = piped(monkeypatch, capsys, folder, "/help\n/nonsense a\n" + "abcd" * 20 + "\nabc\n", "--seed", "3")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 4
    assert lines[0].startswith("/reset forgets") and lines[1].startswith("/nonsense is not known: /reset")
    assert lines[2].endswith("say less")


def test_a_seed_gives_the_same_conversation(monkeypatch: Any, capsys: Any, folder: Path) -> None:
    talks = [piped(monkeypatch, capsys, folder, "abc\nd\n", "--temperature", "2", "--seed", seed)[1] for seed in "112"]
    assert talks[0] == talks[1] != talks[2]
