"""A few examples in a prompt: choices are scored by the chance of being written, and the first examples go first."""

from pathlib import Path

import pytest
import torch

import heedful
from heedful import tokenizers as text
from heedful.cli import main
from heedful.decoding.few_shot import Few, alike, example_text
from heedful.errors import Refusal

EXAMPLES = [(("a fine film",), "good"), (("a dull film",), "bad"), (("nice",), "good")]


def talker(length: int = 256, kind: str = "bpe") -> torch.nn.Module:
    torch.manual_seed(1)
    tokenizer = text.train(["Input: a fine dull film\nAnswer: good bad"] * 3, kind, size=300)
    model = heedful.build("gpt", vocab=len(tokenizer), width=16, depth=1, heads=2, length=length)
    vars(model)["tokenizer"] = tokenizer
    return model.eval()


def test_examples_stand_in_a_prompt_and_what_is_asked_behind_them() -> None:
    assert example_text(*EXAMPLES[0]) == "Input: a fine film\nAnswer: good"
    assert example_text(("it rains", "it is wet")) == "Input: it rains\nInput: it is wet\nAnswer:"


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "words"])
def test_a_choice_is_scored_by_the_chance_of_its_being_written(kind: str) -> None:
    model = talker(kind=kind)
    found = Few(model, EXAMPLES).chosen(("a film",))
    assert {choice for choice, _ in found} == {"good", "bad"} and found[0][1] >= found[1][1]
    prompt = "\n\n".join([*(example_text(*one) for one in EXAMPLES), example_text(("a film",))])
    for choice, score in found:
        whole = model.tokenizer.encode(f"{prompt} {choice}\n")
        begun = alike(model.tokenizer.encode(prompt), whole)
        chances = model(torch.tensor([whole])).detach().log_softmax(-1)[0]
        wanted = sum(float(chances[at - 1, whole[at]]) for at in range(begun, len(whole)))
        assert len(whole) > begun and score == pytest.approx(wanted, abs=1e-4)


def test_examples_for_which_there_is_no_room_are_left_out_from_the_front() -> None:
    whole = talker()
    few, fewer = Few(whole, EXAMPLES), Few(whole, EXAMPLES[-2:])
    assert few.fitting(("a film",)) == 3 and few.chosen(("a film",)) != (last := fewer.chosen(("a film",)))
    prompt = "\n\n".join([*(example_text(*one) for one in EXAMPLES), example_text(("a film",))])
    sizes = [len(whole.tokenizer.encode(f"{prompt} {choice}\n")) for choice in ("good", "bad")]
    few.room = max(sizes) - 1  # too little for one of the answers: then none sees more examples than another
    assert few.fitting(("a film",)) == 2 and few.chosen(("a film",)) == last
    short = talker(length=40)
    with pytest.raises(Refusal, match="the model reads 40"):
        Few(short, EXAMPLES).chosen(("a fine film " * 40,))


def test_many_examples_are_not_all_read_to_find_the_few_that_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    few, read = Few(talker(length=64), EXAMPLES[:2] * 1000), []
    whole = few.ids
    monkeypatch.setattr(few, "ids", lambda text: read.append(len(text)) or whole(text))
    found = few.chosen(("a film",))
    assert found == Few(talker(length=64), EXAMPLES[:2] * 4).chosen(("a film",)) and sum(read) < 5000


def test_a_file_sorted_by_answers_is_shown_by_turns() -> None:
    many = [((f"film {at}",), answer) for answer in ("good", "bad", "odd") for at in range(5)]
    few = Few(talker(), many)
    assert sorted(few.examples) == sorted(many)
    for count in range(3, 12, 3):
        shown = few.examples[-count:]
        assert {answer: sum(one[1] == answer for one in shown) for answer in few.choices} == dict.fromkeys(
            few.choices, count // 3
        )
    assert {one[0][0] for one in few.examples[-3:]} == {"film 4"}, "the last ones of each"


def test_no_example_is_no_prompt_of_a_few() -> None:
    with pytest.raises(Refusal, match="no example has room before"):
        Few(talker(length=32), [(("a fine film " * 9,), answer) for answer in ("good", "bad")]).chosen(("a film",))


def test_one_answer_alone_is_no_choice() -> None:
    with pytest.raises(Refusal, match="one answer alone"):
        Few(talker(), EXAMPLES[:1])


def test_predict_takes_a_file_of_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = talker()
    heedful.save(model, tmp_path / "gpt")
    (tmp_path / "a.tsv").write_text("a fine film\tgood\na dull film\tbad\n")
    asked = ["predict", str(tmp_path / "gpt"), "--examples", str(tmp_path / "a.tsv")]
    with pytest.raises(SystemExit, match="0"):
        main([*asked, "a film", "fine"])
    best = [Few(model, EXAMPLES[:2]).chosen((one,))[0][0] for one in ("a film", "fine")]
    assert capsys.readouterr().out.splitlines() == best
    with pytest.raises(SystemExit, match="0"):
        main([*asked, "a film", "--best", "2"])
    assert len(capsys.readouterr().out.splitlines()) == 2
    for wrong in ("", "a film\tanother"):
        with pytest.raises(SystemExit, match="2"):
            main([*asked, "fine", wrong])
        assert "input 2: " in capsys.readouterr().err


def test_how_many_examples_have_room_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heedful.save(talker(length=64), tmp_path / "gpt")
    (tmp_path / "a.tsv").write_text("a fine film\tgood\na dull film\tbad\n" * 9)
    with pytest.raises(SystemExit, match="0"):
        main(["predict", str(tmp_path / "gpt"), "--examples", str(tmp_path / "a.tsv"), "a film"])
    assert "warning: there is room for 4 of the 18 examples, the last ones" in capsys.readouterr().err
