"""A few examples in a prompt: choices are scored by the chance of being written, and the first examples go first."""

from pathlib import Path

import pytest
import torch

import heedful
from heedful import text
from heedful.cli import main
from heedful.decoding.few import Few, alike, written
from heedful.errors import Refusal

EXAMPLES = [(("a fine film",), "good"), (("a dull film",), "bad"), (("nice",), "good")]


def talker(length: int = 256, kind: str = "bpe") -> torch.nn.Module:
    torch.manual_seed(1)
    tokenizer = text.train(["Input: a fine dull film\nAnswer: good bad"] * 3, kind, size=300)
    model = heedful.build("gpt", vocab=len(tokenizer), width=16, depth=1, heads=2, length=length)
    vars(model)["tokenizer"] = tokenizer
    return model.eval()


def test_examples_stand_in_a_prompt_and_what_is_asked_behind_them() -> None:
    assert written(*EXAMPLES[0]) == "Input: a fine film\nAnswer: good"
    assert written(("it rains", "it is wet")) == "Input: it rains\nInput: it is wet\nAnswer:"


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "words"])
def test_a_choice_is_scored_by_the_chance_of_its_being_written(kind: str) -> None:
    model = talker(kind=kind)
    found = Few(model, EXAMPLES).chosen(("a film",))
    assert {choice for choice, _ in found} == {"good", "bad"} and found[0][1] >= found[1][1]
    prompt = "\n\n".join([*(written(*one) for one in EXAMPLES), written(("a film",))])
    for choice, score in found:
        whole = model.tokenizer.encode(f"{prompt} {choice}\n")
        begun = alike(model.tokenizer.encode(prompt), whole)
        chances = model(torch.tensor([whole])).detach().log_softmax(-1)[0]
        wanted = sum(float(chances[at - 1, whole[at]]) for at in range(begun, len(whole)))
        assert len(whole) > begun and score == pytest.approx(wanted, abs=1e-4)


def test_examples_for_which_there_is_no_room_are_left_out_from_the_front() -> None:
    whole = talker()
    few, fewer = Few(whole, EXAMPLES), Few(whole, EXAMPLES[-2:])
    assert few.chance(("a film",), "good") != (last := fewer.chance(("a film",), "good"))
    prompt = "\n\n".join([*(written(*one) for one in EXAMPLES), written(("a film",))])
    few.room = len(whole.tokenizer.encode(f"{prompt} good\n")) - 1
    assert few.chance(("a film",), "good") == last
    short = talker(length=40)
    with pytest.raises(Refusal, match="the model reads 40"):
        Few(short, EXAMPLES).chosen(("a fine film " * 40,))


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
