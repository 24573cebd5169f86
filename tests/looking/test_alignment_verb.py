"""`heedful align`, over a task that aligns as it is told: lines, pictures, gold links, and every fault in one line."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from heedful.cli import align_verb as align
from heedful.errors import Refusal
from heedful.looking.alignment import Alignment
from heedful.pipelines.learned import Learned
from heedful.pipelines.use import Use
from heedful.tasks import TASKS
from heedful.training import run


class Turned:
    """Translates by writing words backwards, and links each to where it came from; to `mute` it says nothing."""

    def align(self, model: nn.Module, pairs: Sequence[align.Asked]) -> Iterator[Alignment]:
        for source, target in pairs:
            words = source.split()
            answer = words[::-1] if target is None else target.split()
            answer = [] if target is None and words == ["mute"] else answer
            count = min(len(words), len(answer))
            links = tuple((len(words) - 1 - at, at) for at in range(count))
            yield Alignment(tuple(words), tuple(answer), torch.full((len(answer), len(words)), 1 / len(words)), links)

    def warning(self, text: str) -> str | None:
        return None


OTHER = Use(TASKS["sets"], Learned())
Call = Callable[..., list[str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def made(*inputs: str, task: Any = None, stdin: str = "", **options: Any) -> list[str]:
        monkeypatch.setattr(run, "load_trained", lambda folder: (nn.Linear(1, 1), task or Turned()))
        monkeypatch.setattr(sys, "stdin", StringIO(stdin))
        capsys.readouterr()
        align.align(Path("model"), list(inputs), device="cpu", **options)
        return capsys.readouterr().out.splitlines()

    return made


def gold(folder: Path, text: str) -> Path:
    (folder / "gold.txt").write_text(text)
    return folder / "gold.txt"


def test_each_pair_is_a_line_in_order_and_a_source_alone_is_translated_first(call: Call) -> None:
    assert call("a b\tx y", "a b c") == ["0-1 1-0", "0-2 1-1 2-0"]


def test_pairs_come_from_standard_input_where_none_is_given(call: Call) -> None:
    assert call(stdin="a b\tx y\nc\tz\n") == ["0-1 1-0", "0-0"]


def test_an_answer_without_words_is_an_empty_line(call: Call) -> None:
    assert call("mute", "a") == ["", "0-0"]


def test_gold_links_add_one_last_line_of_json(call: Call, tmp_path: Path) -> None:
    lines = call("a b\tx y", "c\tz", gold=gold(tmp_path, "0-1 1?0\n\n"))
    assert lines[:-1] == ["0-1 1-0", "0-0"]
    said = json.loads(lines[-1])
    assert said == {"pairs": 2, "precision": 2 / 3, "recall": 1.0, "error_rate": pytest.approx(1 - 3 / 4)}


def test_gold_links_may_count_from_one(call: Call, tmp_path: Path) -> None:
    lines = call("a b\tx y", gold=gold(tmp_path, "1-2 2-1\n"), first=1)
    assert json.loads(lines[-1])["error_rate"] == 0.0


@pytest.mark.parametrize("ending", [".png", ".svg", ".json", ".html"])
def test_every_ending_is_written(call: Call, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"words{ending}"
    call("a b\tx y", "c", "mute", out=out)
    assert out.stat().st_size > 100
    if ending == ".json":
        assert [one["target"] for one in json.loads(out.read_text())["alignments"]] == [["x", "y"], ["c"], []]


def test_gold_links_are_in_what_is_written(call: Call, tmp_path: Path) -> None:
    call("a b\tx y", gold=gold(tmp_path, "0-1 1p0"), out=tmp_path / "words.json")
    [one] = json.loads((tmp_path / "words.json").read_text())["alignments"]
    assert (one["sure"], one["possible"]) == ([[0, 1]], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("inputs", "options", "fault"),
    [
        (["a\tb\tc"], {}, "input 1: 3 fields; write a source, a tab and its target"),
        (["a", "  "], {}, "input 2: the source is empty"),
        (["a\t "], {}, "input 1: the target is empty"),
        ([], {}, "standard input is empty"),
        (["a"], {"task": OTHER}, "this model does not translate"),
        (["a"], {"out": Path("words.gif")}, "the ending .gif is not known"),
        (["mute"], {"out": Path("words.png")}, "the model wrote no word"),
        (["a"], {"out": Path("/nowhere/words.json")}, "/nowhere/words.json cannot be written"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(call: Call, inputs: list[str], options: dict, fault: str) -> None:
    with pytest.raises(Refusal, match=fault) as refused:
        call(*inputs, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("0-0\n", "gold.txt has 1 lines for 2 pairs"),
        ("0-0\n0-0\n0-0\n", "gold.txt has 3 lines for 2 pairs"),
        ("0-0\n0-7\n", "gold.txt, line 2: 0-7, counted from 0, goes to target word 7, and there are 1"),
        ("0-0\n0+0\n", "gold.txt, line 2: '0[+]0' is no link"),
    ],
)
def test_gold_links_that_do_not_fit_are_refused(call: Call, tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(Refusal, match=fault):
        call("a b\tx y", "c\tz", gold=gold(tmp_path, text))


def test_gold_links_need_a_target(call: Call, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="input 2: there is no target to compare"):
        call("a\tb", "a", gold=gold(tmp_path, "0-0\n0-0\n"))


def test_the_verb_is_known_before_anything_heavy_is_loaded() -> None:
    program = "import sys, heedful.cli.align_verb; print(sorted({'torch', 'numpy', 'matplotlib'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
