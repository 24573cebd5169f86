"""`heedful.generate`: a text in and a text out, ids in and ids out, whole or as it is written."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor

import heedful
from heedful.decoding import Decoding, search
from heedful.errors import Refusal
from heedful.models import Transformer
from heedful.models.text.transformer import END
from heedful.tokenizers import Tokenizer
from tests.decoding.toys import beam, sharpened, sources, told, writer

LETTERS = "abcdefgh"  # with the special tokens, the twelve of the toys
WAYS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.9, "seed": 3},
    {"temperature": 1.5, "top_k": 6, "top_p": 0.9, "min_p": 0.02, "seed": 1},
    {"max_new_tokens": 3},
    {"max_new_tokens": None, "temperature": 1.0},
]
ALL_WAYS = pytest.mark.parametrize("way", WAYS, ids=str)


def found(model: Transformer, source: Tensor, way: dict[str, Any]) -> list[int]:
    """What search finds, by the same words."""
    way = {"max_new_tokens": 64, **way}
    seed = way.pop("seed", 0)
    return list(search(model, told(model, source), Decoding(**way), seed=seed)[0][0].tokens)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its tokenizer beside it."""
    place = tmp_path_factory.mktemp("folder") / "model"
    heedful.save(writer(4), place)
    Tokenizer.of_characters(LETTERS).write(place / "tokenizer.json")
    return place


@ALL_WAYS
def test_ids_are_answered_with_ids_as_search_finds_them(way: dict[str, Any]) -> None:
    model = writer(4)
    for row in sources((7, 3, 1)):
        ids = row[row != 0]
        expected = found(model, ids[None], way)
        assert heedful.generate(model, ids.tolist(), **way) == expected
        assert heedful.generate(model, ids, **way).equal(torch.tensor(expected, dtype=torch.long))
        assert list(heedful.generate(model, ids, stream=True, **way)) == expected


@ALL_WAYS
def test_a_text_is_answered_with_text_and_read_with_its_end(folder: Path, way: dict[str, Any]) -> None:
    model = heedful.load(folder)
    for text in ("abc", "hgfedcba", ""):
        ids = [*(LETTERS.index(letter) + 4 for letter in text), END]
        tokens = found(model, torch.tensor([ids]), way)
        expected = "".join(LETTERS[token - 4] for token in tokens if token >= 4)
        assert heedful.generate(model, text, **way) == expected
        pieces = list(heedful.generate(model, text, stream=True, **way))
        assert "".join(pieces) == expected
        assert len(pieces) <= len(tokens) + 1


def test_the_toy_has_something_to_say(folder: Path) -> None:
    said = {heedful.generate(heedful.load(folder), text, **way) for text in ("abc", "hgfedcba") for way in WAYS}
    assert len(said) > 4
    assert max(map(len, said)) > 5


def test_beams_are_those_of_beam_search() -> None:
    model, source = writer(4), sources((7,))
    expected = list(beam(model, source, 4, 1, 30, 0.6)[0][0].tokens)
    assert heedful.generate(model, source[0], 30, beams=4, length_penalty=0.6).tolist() == expected


@pytest.mark.parametrize("way", [{}, {"temperature": 1.0, "seed": 2}], ids=str)
def test_where_it_does_not_stop_at_end_it_is_a_token_as_any_other(way: dict[str, Any]) -> None:
    model, ids = writer(2), sources((7,))[0].tolist()
    stopped = heedful.generate(model, ids, 40, **way)
    through = heedful.generate(model, ids, 40, stop_at_end=False, **way)
    assert len(through) == 40 > len(stopped)
    assert through[: len(stopped) + 1] == [*stopped, END]
    assert list(heedful.generate(model, ids, 40, stop_at_end=False, stream=True, **way)) == through


def test_the_seed_decides_and_nothing_else() -> None:
    model, ids = writer(4), sources((7,))[0].tolist()
    answers = [heedful.generate(model, ids, temperature=2.0, seed=seed) for seed in (0, 0, 1, 2)]
    assert answers[0] == answers[1]
    assert len({tuple(answer) for answer in answers}) == 3


def of_bytes() -> Tokenizer:
    """A tokenizer whose tokens are bytes, so that most characters end in a later token than they begin."""
    known = ["<pad>", "<begin>", "<end>", "<unknown>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    engine = Engine(models.BPE({token: at for at, token in enumerate(known)}, []))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    return Tokenizer(engine)


def test_a_stream_of_text_gives_whole_characters_that_join_to_the_whole() -> None:
    tokenizer = of_bytes()
    torch.manual_seed(0)
    model = sharpened(heedful.build("transformer", vocab=260, width=16, depth=1, heads=2)).eval()  # type: ignore[arg-type]
    vars(model)["tokenizer"] = tokenizer
    for seed, text in enumerate(("déjà", "日本", "a")):
        whole = heedful.generate(model, text, temperature=1.0, seed=seed)
        pieces = list(heedful.generate(model, text, temperature=1.0, seed=seed, stream=True))
        assert "".join(pieces) == whole
        assert len(pieces) > 3
        assert all(pieces)


def test_a_broken_tokenizer_stops_only_those_who_give_text(folder: Path, tmp_path: Path) -> None:
    heedful.save(writer(4), tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").write_text("{")
    model = heedful.load(tmp_path / "model")
    assert heedful.generate(model, [4, 5]) == heedful.generate(heedful.load(folder), [4, 5])
    with pytest.raises(Refusal, match=r"tokenizer.json is no tokenizer"):
        heedful.generate(model, "ab")


def test_a_loaded_model_has_the_tokenizer_of_its_folder_and_takes_it_along(folder: Path) -> None:
    model = heedful.load(folder)
    assert model.state_dict().keys() == writer(4).state_dict().keys()
    for one in (model, copy.deepcopy(model)):
        assert one.tokenizer.encode("abc") == [4, 5, 6]
        assert one.tokenizer.decode([6, 5, END]) == "cb"
        assert len(one.tokenizer) == 12


@pytest.mark.parametrize(
    ("prompt", "how", "said"),
    [
        ("ab", {}, "no tokenizer to read a text with; give ids"),
        ([4, 12], {}, "prompt: 12 is no token of the model, which reads ids from 0 to 11 but for 0"),
        ([4, 0, 5], {}, "prompt: 0 is no token"),
        ([-1], {}, "prompt: -1 is no token"),
        (torch.tensor([[4, 5]]), {}, "a prompt of 2 axes is not one sequence of ids"),
        ([4], {"beams": 3, "stop_at_end": False}, "cannot pass it; give beams=1"),
        ([4], {"beams": 3, "stream": True}, "cannot be streamed; give beams=1"),
        ([4], {"beams": 3, "temperature": 1.0}, "give beams=1 or temperature=0"),
        ([4], {"top_k": 3}, "give temperature=1 or top_k=0"),
        ([4], {"temperature": -1.0}, "temperature=-1.0 does not fit: it should be 0 or more"),
        ([4], {"max_new_tokens": 0}, "max_new_tokens=0 does not fit"),
        ([4], {"max_new_tokens": 41}, "give at most 40"),
        ([4], {"temperature": 1.0, "seed": -1}, "seed=-1 is below 0"),
    ],
)
def test_what_cannot_be_generated_is_refused_at_the_call(prompt: Any, how: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        heedful.generate(writer(position="learned"), prompt, **{"max_new_tokens": 20} | how)


def test_a_source_with_a_vocabulary_of_its_own_is_read_by_it() -> None:
    heedful.generate(writer(source_vocab=30), [29])
    with pytest.raises(Refusal, match="from 0 to 7"):
        heedful.generate(writer(source_vocab=8), [8])


def test_models_that_do_not_write_are_refused() -> None:
    model = heedful.build("predictor", channels=2, classes=3, width=16, heads=2)
    with pytest.raises(Refusal, match="family 'predictor' does not write"):
        heedful.generate(model, [4, 5])
