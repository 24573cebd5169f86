"""Every command and snippet of the README, of Start and of the guides is run, in order, in one folder, in few steps."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.cli import main
from heedful.data.toys.invented_language import sentences
from heedful.training.spec import recipes_by_goal

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NAV = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
PAGES = [ROOT / "docs" / name for name in re.findall(r"((?:start|guides)/\w+\.md)$", NAV, re.MULTILINE)]
TEXTS = [README, *(page.read_text(encoding="utf-8") for page in PAGES)]
BLOCKS = [one for text in TEXTS for one in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
ROWS = re.findall(r"^\| (.+) \| `(heedful train [\w-]+)` \|$", README, re.MULTILINE)
SHORT = ["training.steps=4", "training.evaluate_every=2", "training.save_every=4"]


def commands() -> list[str]:
    lines = [line for kind, text in BLOCKS if kind == "bash" for line in text.splitlines() if line.strip()]
    return list(dict.fromkeys("heedful train reverse" if line == "make demo" else line for line in lines))


def runnable(line: str) -> list[str] | None:
    """The command as the test runs it: recipes on toy data, own files for a few steps."""
    if line.startswith(". "):
        return None
    words = [tabs(word) for word in shlex.split(line)]
    if words[0] == "torchrun":
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", *words[1:], *SHORT]
    if words[1] == "verify-resume":
        return [*words[:-1], "1"]  # kill; tests/training has more of them
    assert words[0] == "heedful", f"a page runs {line!r}, which this test does not know"
    if words[1] == "train":
        own = any(word.startswith(("data=", "data.train")) for word in words)
        words += ["decoding.max_new_tokens=4"] if words[2].startswith("translate") else []  # it knows no end yet
        words += SHORT if own else [*SHORT, "data=toy"]  # that toys are learned is for the tests of recipes
    return words


def tabs(word: str) -> str:
    """A word with the tabs that bash makes of $'...'."""
    return word[1:].replace("\\t", "\t") if word.startswith("$") else word


def own_files(folder: Path) -> None:
    random = np.random.default_rng(0)
    texts = {"".join(random.choice(list("abcdefgh"), random.integers(2, 9))) for _ in range(200)}
    (folder / "pairs.tsv").write_text("".join(f"{text}\t{text.upper()}\n" for text in sorted(texts)), encoding="utf-8")
    points = [f"{name},{name % 2},{x:.3f},{y:.3f}" for name in range(80) for x, y in random.normal(name % 2, 1, (5, 2))]
    (folder / "points.csv").write_text("set,label,x,y\n" + "\n".join(points) + "\n", encoding="utf-8")
    steps = [f"{np.sin(at / 5):.4f},{np.cos(at / 7):.4f}" for at in range(800)]
    phrases = sentences(300, seed=1)
    (folder / "sentences.tsv").write_text("".join(f"{p.source}\t{p.target}\n" for p in phrases), encoding="utf-8")
    for name, some in (("train", phrases[:200]), ("valid", phrases[200:250]), ("test", phrases[250:])):
        (folder / f"{name}.en").write_text("".join(f"{p.source}\n" for p in some), encoding="utf-8")
        (folder / f"{name}.xx").write_text("".join(f"{p.target}\n" for p in some), encoding="utf-8")
    for at in range(40):
        place = folder / "photos" / ("cat", "dog")[at % 2]
        place.mkdir(parents=True, exist_ok=True)
        levels = random.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(levels).save(place / f"{at}.png")
    shutil.copy(folder / "photos/cat/0.png", folder / "photos/cat/1.png")
    (folder / "book.txt").write_text("".join(f"{p.source}\n" for p in phrases), encoding="utf-8")
    reviews = "".join(f"{p.source}\t{('good', 'bad')[at % 2]}\n" for at, p in enumerate(phrases))
    (folder / "reviews.tsv").write_text(reviews, encoding="utf-8")
    rows = "".join(f'"{p.source}",{("good", "bad")[at % 2]}\n' for at, p in enumerate(phrases))
    (folder / "reviews.csv").write_text("text,label\n" + rows, encoding="utf-8")
    (folder / "summaries.tsv").write_text("".join(f"{p.source}\t{p.source[:9]}\n" for p in phrases), encoding="utf-8")
    tagged = [
        "\n".join([f"Name{at} B-person", *(f"{word} O" for word in p.source.split())]) for at, p in enumerate(phrases)
    ]
    (folder / "names.conll").write_text("\n\n".join(tagged) + "\n", encoding="utf-8")
    asked = [{"question": f"what is {at} ?", "context": p.source} for at, p in enumerate(phrases)]
    answers = [one | {"answers": [{"text": one["context"].split()[0], "answer_start": 0}]} for one in asked]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, answers)) + "\n", encoding="utf-8")
    turns = [[{"role": "user", "content": p.source}, {"role": "assistant", "content": p.target}] for p in phrases]
    lines = "\n".join(json.dumps({"messages": one}) for one in turns)
    (folder / "chats.jsonl").write_text(lines + "\n", encoding="utf-8")
    (folder / "measurements.csv").write_text("\n".join(steps) + "\n", encoding="utf-8")


def run(command: list[str], folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def here(words: list[str]) -> None:
    """Runs a command of heedful's in this process: starting one takes longer than most of them."""
    said, shows = io.StringIO(), warnings.showwarning
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("default")
        with pytest.raises(SystemExit) as stop:
            main(words)
    warnings.showwarning = shows
    assert stop.value.code == 0, f"heedful {shlex.join(words)}\n{said.getvalue()}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every command was run, in order."""
    place = tmp_path_factory.mktemp("readme")
    own_files(place)
    with contextlib.chdir(place), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        for command in filter(None, map(runnable, commands())):
            run(command, place) if command[0] == sys.executable else here(command[1:])
    return place


def test_every_command_of_the_pages_runs_and_leaves_what_it_names(folder: Path) -> None:
    for made in ("runs/reverse/report.html", "attention.png", "text.html", "runs/reviews/model", "alignment.png"):
        assert (folder / made).exists(), made


def test_every_snippet_of_the_pages_runs(folder: Path) -> None:
    snippets = [text for kind, text in BLOCKS if kind == "python"]
    each = f"for text in {snippets!r}:\n    exec(text, {{}})"  # by itself, but torch is imported once for all
    run([sys.executable, "-W", "error", "-c", each], folder)


def test_the_demo_is_the_recipe_that_the_readme_shows() -> None:
    assert re.search(r"^demo:.*\n(.*\n)*?.*heedful train reverse", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= 120


def test_the_table_states_what_the_recipes_expect() -> None:
    assert len(ROWS) == 10
    for row, command in ROWS:
        (version, *_) = recipes_by_goal.versions(command.split()[-1])
        ((_, score),) = version.shown(version.expected.score.items())
        assert score.removesuffix(" %") in row, f"{command}: the README does not say {score}"
        assert version.time.replace(" on ", ", ") in row, f"{command}: the README does not say {version.time}"
