"""Several tasks in one model: what is asked is told beside a text, and only its own classes answer."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful import models
from heedful.errors import Refusal
from heedful.formats import native
from heedful.training import run
from heedful.training.spec import recipes
from heedful.training.trained_run import load_trained
from tests.answered import plain

CPU = torch.device("cpu")
PAIRS = [(one, two) for one in "abcdef" for two in "abcdef"]
ROWS = [
    *({"text": f"{one} {two}", "task": "same", "label": "yes" if one == two else "no"} for one, two in PAIRS),
    *({"text": f"{one} {two}", "task": "first", "label": one} for one, two in PAIRS),
]


def written(place: Path, rows: list[dict[str, str]], ending: str) -> list[str]:
    named = []
    for split in ("train", "valid", "test"):
        path = place / f"{split}.{ending}"
        if ending == "jsonl":
            path.write_text("\n".join(map(json.dumps, rows)))
        else:
            between = "\t" if ending == "tsv" else ","
            path.write_text("\n".join([between.join(rows[0]), *(between.join(row.values()) for row in rows)]))
        named.append(f"data.{split}={path}")
    return named


def learned(place: Path, *changes: str, ending: str = "tsv", rows: list[dict[str, str]] = ROWS) -> Path:
    named = written(place, rows, ending)
    said = [*named, "data.tokenizer=words(size=50)", "training.steps=3", "model.width=16", "model.dropout=0", *changes]
    run.train(recipes.resolve("classify-several", said), place / "run", False, CPU)
    return place / "run"


def test_an_encoder_looks_as_each_texts_task_would_have_it() -> None:
    net = models.build("bert", vocab=9, width=8, heads=2, depth=1, length=8, tasks=2, bias="camtl").double().eval()
    torch.nn.init.normal_(net.bias.shift)
    x, both = torch.randint(4, 9, (2, 8)), torch.tensor([0, 1])
    alone = torch.stack([net(x, tasks=torch.full((2,), task))[task] for task in range(2)])
    torch.testing.assert_close(net(x, tasks=both), alone)
    assert torch.equal(net(x), net(x, tasks=torch.zeros(2, dtype=torch.long))), "unless told, all are of the first"
    assert not torch.allclose(net(x)[1], alone[1])
    plain = models.build("bert", vocab=9, width=8, heads=2, depth=1, length=8, tasks=2).eval()
    assert torch.equal(plain(x), plain(x, tasks=both)), "without such a bias it looks the same way"


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_only_the_classes_of_a_task_answer_it_whatever_the_model_knows(tmp_path: Path, ending: str) -> None:
    model, task = load_trained(learned(tmp_path, ending=ending))
    asked = [f"{row['task']}\t{row['text']}" for row in ROWS]
    said = plain(task.predict(model, asked))
    assert {"yes", "no"} >= set(said[:36]) and set("abcdef") >= set(said[36:])
    assert task.look(model, asked[0]).name.endswith(f"→ {said[0]}")


def test_what_is_learned_answers_each_task_and_scores_tell_them_apart(tmp_path: Path) -> None:
    place = learned(tmp_path, "training.steps=300", "training.rate=0.01", "training.warmup=10")
    model, task = load_trained(place)
    assert native.read_json(place / "model" / "task.json")["answers"] == {
        "first": list("abcdef"),
        "same": ["no", "yes"],
    }
    samples = task.reopen(recipes.resolve("classify-several", written(tmp_path, ROWS, "tsv")).data, 1).test
    scores = task.score(model, samples)
    assert scores["accuracy"] == pytest.approx(np.mean([scores["accuracy_first"], scores["accuracy_same"]]))
    assert scores["accuracy"] > 0.95
    assert "Task by task" in (place / "report.html").read_text()


@pytest.mark.parametrize(
    ("changes", "rows", "said"),
    [
        (
            [],
            [{"text": f"a{n % 3}", "label": "xy"[n % 2]} for n in range(9)],
            "the task is missing; name a column `task`",
        ),
        (["model.family=gpt"], ROWS, "model.family=gpt cannot learn task"),
        (["objective.smoothing=0.1"], ROWS, "unknown key 'objective.smoothing'"),
        (["model.bias=camtl(tasks=3)"], ROWS, "tasks is 2 in this model; leave it out"),
        (["model.tasks=3"], ROWS, "model.tasks=3 contradicts the data, which say 2"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, changes: list[str], rows: list[dict[str, str]], said: str) -> None:
    with pytest.raises(Refusal) as refused:
        learned(tmp_path, *changes, rows=rows)
    assert said in str(refused.value)


def test_an_answer_to_another_task_and_a_task_unheard_of_are_refused_with_their_place(tmp_path: Path) -> None:
    named = written(tmp_path, ROWS, "tsv")
    for row, said in (
        ("a b\tsame\tc", "class 'c' answers no task 'same'"),
        ("a b\tlast\tb", "task 'last' is not in the training data"),
    ):
        (tmp_path / "test.tsv").write_text(f"text\ttask\tlabel\n{row}\n")
        with pytest.raises(Refusal, match=rf"test\.tsv, line 2: {said}"):
            run.train(recipes.resolve("classify-several", named), tmp_path / "run", False, CPU)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a b", "has no tab"),
        ("same\ta\tb\tc", "has 3 tabs"),
        ("last\ta", "is not in the training data"),
        ("same\t ", "empty"),
    ],
)
def test_an_input_without_a_known_task_is_refused(tmp_path: Path, text: str, said: str) -> None:
    model, task = load_trained(learned(tmp_path))
    with pytest.raises(Refusal, match=said):
        plain(task.predict(model, [text]))


def test_each_task_is_asked_about_as_many_texts_as_it_learned_from(tmp_path: Path) -> None:
    pairs = [{"text": row["text"], "pair": "a", "task": "pair", "label": row["label"]} for row in ROWS[:36]]
    model, task = load_trained(learned(tmp_path, ending="jsonl", rows=[*ROWS, *pairs]))
    assert len(plain(task.predict(model, ["same\ta b", "pair\ta\tb"]))) == 2
    for text, said in (("same\ta\tb", "a pair, and single texts were"), ("pair\ta b", "one text, and pairs were")):
        with pytest.raises(Refusal, match=said):
            plain(task.predict(model, [text]))
