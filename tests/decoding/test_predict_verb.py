"""`heedful predict`: options become a spec of how answers are searched for, and answers are printed in order."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch import nn

from heedful.cli import main
from heedful.decoding import Decoding
from heedful.pipelines.pipeline import Search
from heedful.results import Result, Text, Unread


class Echo:
    """A task that answers with what it was asked, and keeps how it was asked."""

    name, input, writes, decoding = "echo", "a word", True, Decoding()

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def warning(self, text: str) -> str | None:
        return f"{text!r} is strange" if text == "strange" else None

    def attempt(self, model: nn.Module, given: str) -> str | Unread:
        return given or Unread("the input is empty; give a word")

    def ask(self, model: nn.Module, inputs: list[str], search: Search) -> Iterator[list[Result]]:
        self.calls.append(("ask", search.decoding, search.best, search.seed))
        for one in (self.attempt(model, text) for text in inputs):
            ranks = range(search.best or 1)
            yield [one] if isinstance(one, Unread) else [Text(f"{one}{rank}", -rank / 3) for rank in ranks]

    def stream(self, model: nn.Module, text: str, decoding: Decoding, seed: int, number: int) -> Iterator[str]:
        self.calls.append(("stream", decoding, seed, number))
        return iter(text)


Call = Callable[..., tuple[object, str, str]]


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Echo:
    made = Echo()
    monkeypatch.setattr("heedful.training.run.usable", lambda folder: (nn.Linear(1, 1), made))
    return made


@pytest.fixture
def predict(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    def call(*words: str, stdin: str = "") -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as left:
            main(["predict", "folder", *words])
        return left.value.code, *capsys.readouterr()

    return call


def test_the_task_decides_where_no_option_is_given(task: Echo, predict: Call) -> None:
    task.decoding = Decoding(beams=5, length_penalty=0.6)
    assert predict("b", "a") == (0, "b0\na0\n", "")
    assert task.calls == [("ask", task.decoding, None, 0)]


WARM = ["--temperature", "0.8"]
OPTIONS: list[tuple[list[str], Decoding]] = [
    (["--beams", "3"], Decoding(beams=3, length_penalty=0.6)),
    (["--beams", "1"], Decoding(length_penalty=0.6)),
    (["--length-penalty", "-1"], Decoding(beams=5, length_penalty=-1.0)),
    (["--max-new-tokens", "7"], Decoding(beams=5, length_penalty=0.6, max_new_tokens=7)),
    (WARM, Decoding(temperature=0.8)),
    (["--temperature", "0"], Decoding(beams=5, length_penalty=0.6)),
    ([*WARM, "--top-k", "4"], Decoding(temperature=0.8, top_k=4)),
    ([*WARM, "--top-p", "0.5"], Decoding(temperature=0.8, top_p=0.5)),
    ([*WARM, "--min-p", "0.1"], Decoding(temperature=0.8, min_p=0.1)),
    ([*WARM, "--beams", "1"], Decoding(temperature=0.8)),
]


@pytest.mark.parametrize(("words", "decoding"), OPTIONS, ids=lambda value: str(value))
def test_an_option_says_otherwise_than_the_task(
    task: Echo, predict: Call, words: list[str], decoding: Decoding
) -> None:
    task.decoding = Decoding(beams=5, length_penalty=0.6)
    assert predict("a", *words)[0] == 0
    assert task.calls == [("ask", decoding, None, 0)]


def test_several_answers_come_with_their_scores_and_in_order(task: Echo, predict: Call) -> None:
    lines = "b0\t0.0000\nb1\t-0.3333\na0\t0.0000\na1\t-0.3333\n"
    assert predict("--beams", "2", "--best", "2", stdin="b\na\n") == (0, lines, "")
    assert predict("b", "a", *WARM, "--best", "2", "--seed", "9") == (0, lines, "")
    assert task.calls == [("ask", Decoding(beams=2), 2, 0), ("ask", Decoding(temperature=0.8), 2, 9)]


def test_an_answer_comes_with_its_score_where_the_best_is_asked_for(task: Echo, predict: Call) -> None:
    assert predict("a", "--best", "1") == (0, "a0\t0.0000\n", "")


UNREAD = "heedful: input 2: the input is empty; give a word\n"


def test_what_cannot_be_read_is_named_and_the_others_are_answered_in_their_places(task: Echo, predict: Call) -> None:
    said = f"{UNREAD}heedful: 1 of 3 inputs could not be read; the others are answered\n"
    assert predict(stdin="one\n\ntwo\n") == (1, "one0\n\ntwo0\n", said)
    why = '{"kind": "unread", "why": "the input is empty; give a word"}'
    one, none, two = predict("--json", stdin="one\n\ntwo\n")[1].splitlines()
    assert none == why and [json.loads(line)["text"] for line in (one, two)] == ["one0", "two0"]


def test_where_nothing_can_be_read_nothing_is_answered(task: Echo, predict: Call) -> None:
    assert predict(stdin="\n\n")[:2] == (2, "") and "none of 2 inputs could be read" in predict(stdin="\n\n")[2]
    assert predict(stdin="\n") == (2, "", "heedful: input 1: the input is empty; give a word\n")


def test_a_stream_prints_the_same_and_reads_all_inputs_before_it_answers(task: Echo, predict: Call) -> None:
    assert predict("two", "words", "--stream") == (0, "two\nwords\n", "")
    assert predict("a", *WARM, "--seed", "4", "--stream") == (0, "a\n", "")
    assert task.calls[1:] == [
        ("stream", Decoding(), 0, 1),
        ("stream", Decoding(temperature=0.8), 4, 0),
    ]
    said = f"{UNREAD}heedful: 1 of 3 inputs could not be read; the others are answered\n"
    assert predict("--stream", stdin="one\n\ntwo\n") == (1, "one\n\ntwo\n", said)


def test_a_strange_input_is_warned_of_and_answered(task: Echo, predict: Call) -> None:
    assert predict("strange") == (0, "strange0\n", "heedful: warning: 'strange' is strange\n")


BY_CHANCE = "is for answers drawn by chance and the temperature is 0; give --temperature 1 or"
REFUSED = [
    (["--best", "3"], "--best 3 needs at least as many --beams; give --beams 3"),
    (["--best", "3", "--beams", "2"], "--best 3 needs at least as many --beams; give --beams 3"),
    (["--seed", "1"], "--seed is for answers drawn by chance; give --temperature too, or leave it out"),
    (["--seed", "1", *WARM, "--stream", "--best", "2"], "--stream prints one answer as it is written and --best 2"),
    (["--stream", "--beams", "4"], "--stream prints what is written at once and 4 beams choose at the end; give"),
    (["--length-penalty", "0.6"], "--length-penalty compares what several beams find; give --beams 2 or more"),
    (
        ["--beams", "2", *WARM],
        "2 beams look for the likeliest answer and a temperature of 0.8 draws one by chance; give",
    ),
    (["--top-k", "3"], f"--top-k 3 {BY_CHANCE} --top-k 0\n"),
    (["--top-p", "0.5"], f"--top-p 0.5 {BY_CHANCE} --top-p 1\n"),
    (["--min-p", "0.5"], f"--min-p 0.5 {BY_CHANCE} --min-p 0\n"),
    ([*WARM, "--top-p", "0"], "--top-p 0.0 does not fit: it should be greater than 0"),
    ([*WARM, "--top-p", "1.5"], "invalid value for '--top-p'"),
    ([*WARM, "--min-p", "1"], "--min-p 1.0 does not fit: it should be less than 1"),
    ([*WARM, "--top-k", "-1"], "invalid value for '--top-k'"),
    (["--temperature", "-1"], "invalid value for '--temperature'"),
    (["--temperature", "nan"], "invalid value for '--temperature'"),
    (["--temperature", "inf"], "--temperature inf does not fit: it should be a finite number"),
    (["--max-new-tokens", "0"], "invalid value for '--max-new-tokens'"),
    ([*WARM, "--seed", "-1"], "invalid value for '--seed'"),
]


@pytest.mark.parametrize(
    ("words", "said"), REFUSED, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_options_that_contradict_are_refused_in_one_line(
    task: Echo, predict: Call, words: list[str], said: str
) -> None:
    status, out, err = predict("a", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"heedful: {said}")
    assert not task.calls


def test_a_task_with_beams_is_not_streamed_in_silence(task: Echo, predict: Call) -> None:
    task.decoding = Decoding(beams=5)
    status, _, err = predict("a", "--stream")
    assert (status, err) == (
        2,
        "heedful: --stream prints what is written at once and 5 beams choose at the end; give --beams 1\n",
    )
    assert predict("a", "--stream", "--beams", "1")[:2] == (0, "a\n")
    assert predict("a", "--stream", *WARM)[:2] == (0, "a\n")


@pytest.mark.parametrize("words", [["--beams", "1"], ["--seed", "0"], ["--stream"], WARM], ids=str)
def test_a_task_that_does_not_write_takes_no_options_of_writing(task: Echo, predict: Call, words: list[str]) -> None:
    task.writes = False
    said = f"heedful: {words[0]} is for models that write, and this one's task is echo; leave it out\n"
    assert predict("a", *words) == (2, "", said)
    assert predict("b", "a") == (0, "b0\na0\n", "")
    assert task.calls == [("ask", task.decoding, None, 0)]


class Terminal(io.StringIO):
    """Something that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("into_a_file", [True, False])
def test_answers_are_counted_on_the_terminal_where_they_go_into_a_file(
    task: Echo, monkeypatch: pytest.MonkeyPatch, into_a_file: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out, err = io.StringIO() if into_a_file else Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as left:
        main(["predict", "folder", "one", "two", "three"])
    assert (left.value.code, out.getvalue()) == (0, "one0\ntwo0\nthree0\n")
    assert ("3/3" in err.getvalue()) is into_a_file
