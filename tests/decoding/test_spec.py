"""One spec of how answers are searched for, what it refuses, and that search and stream do as it says."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from heedful.decoding import Decoding, search, stream
from heedful.errors import Refusal
from heedful.models.refusals import refusal
from heedful.models.text.transformer import END
from tests.decoding.toys import Biased, beam, greedy, sample, sources, writer

NEW = 40
WARM = {"temperature": 1.3, "top_k": 8, "top_p": 0.95, "min_p": 0.01}


def test_search_is_greedy_beam_or_sample_as_the_spec_says() -> None:
    model, source = writer(4), sources()
    batch, plain = {"source": source}, Decoding(max_new_tokens=NEW)
    assert search(model, batch, plain) == [[one] for one in greedy(model, source, NEW)]
    weighed = Decoding(beams=4, length_penalty=0.6, max_new_tokens=NEW)
    assert search(model, batch, weighed, 3) == beam(model, source, 4, 3, NEW, 0.6)
    warm, numbers = Decoding(**WARM, max_new_tokens=NEW), [9, 8, 7, 6, 5, 4, 3]
    expected = sample(model, source, *WARM.values(), max_new_tokens=NEW, seed=5, best=2, numbers=numbers)
    assert search(model, batch, warm, 2, 5, numbers) == expected


def test_more_answers_than_a_search_can_give_are_refused() -> None:
    for decoding in (Decoding(), Decoding(beams=2)):
        with pytest.raises(Refusal, match="as many beams as answers"):
            search(writer(), {"source": sources()}, decoding, best=3)


@pytest.mark.parametrize("decoding", [Decoding(), Decoding(**WARM), Decoding(temperature=1.0)], ids=str)
@pytest.mark.parametrize("new", [None, 3, NEW])
def test_what_is_streamed_is_what_search_finds(decoding: Decoding, new: int | None) -> None:
    model, decoding = writer(4), decoding.but(max_new_tokens=new)
    for number, row in enumerate(sources()):
        [[answer]] = search(model, {"source": row[None]}, decoding, seed=7, numbers=[number])
        assert tuple(stream(model, {"source": row[None]}, decoding, 7, number)) == answer.tokens


def test_a_stream_gives_each_token_before_the_next_is_made_and_never_end() -> None:
    model = Biased(writer(2))
    [expected] = greedy(model, sources((7,)), NEW)
    assert expected.finished and len(expected.tokens) > 1
    model.rows.clear()
    for made, token in enumerate(stream(model, {"source": sources((7,))}, Decoding(max_new_tokens=NEW)), 1):
        assert len(model.rows) == made
        assert token != END
    assert len(model.rows) == len(expected.tokens) + 1


def test_who_reads_a_stream_may_train_meanwhile() -> None:
    model = writer(4).train()
    expected = greedy(model, sources((7,)), NEW)[0].tokens
    tokens = []
    for token in stream(model, {"source": sources((7,))}, Decoding(max_new_tokens=NEW)):
        tokens.append(token)
        assert torch.is_grad_enabled()
        assert all(part.training for part in model.modules())
    assert tuple(tokens) == expected


def test_what_cannot_be_streamed_is_refused_before_the_first_token_is_asked_for() -> None:
    with pytest.raises(Refusal, match=r"5 beams find is known at the end.*give beams=1"):
        stream(writer(), {"source": sources((7,))}, Decoding(beams=5))
    with pytest.raises(Refusal, match="7 sources cannot be streamed at once; give one"):
        stream(writer(), {"source": sources()}, Decoding())
    with pytest.raises(Refusal, match="at most 40"):
        stream(writer(position="learned"), {"source": sources((7,))}, Decoding(max_new_tokens=41))
    with pytest.raises(Refusal, match="seed=-1"):
        stream(writer(), {"source": sources((7,))}, Decoding(temperature=1.0), -1)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"beams": 0}, "decoding.beams=0 does not fit: it should be 1 or more"),
        ({"beams": 2.0}, "decoding.beams=2.0 does not fit: it should be a whole number"),
        ({"beams": 1001}, "decoding.beams=1001 does not fit: it should be less than or equal to 1000"),
        ({"length_penalty": float("nan")}, "decoding.length_penalty=nan does not fit: it should be a finite number"),
        ({"temperature": -0.1}, "decoding.temperature=-0.1 does not fit: it should be 0 or more"),
        ({"temperature": float("inf")}, "decoding.temperature=inf does not fit: it should be a finite number"),
        ({"temperature": 1.0, "top_k": -1}, "decoding.top_k=-1 does not fit: it should be 0 or more"),
        ({"temperature": 1.0, "top_p": 0.0}, "decoding.top_p=0.0 does not fit: it should be greater than 0"),
        ({"temperature": 1.0, "top_p": float("nan")}, "decoding.top_p=nan does not fit: it should be a finite number"),
        ({"temperature": 1.0, "min_p": 1.0}, "decoding.min_p=1.0 does not fit: it should be less than 1"),
        ({"max_new_tokens": 0}, "decoding.max_new_tokens=0 does not fit: it should be 1 or more"),
        ({"beam": 3}, "unknown key 'decoding.beam'; did you mean 'decoding.beams'? known: "),
        (
            {"beams": 4, "temperature": 0.7},
            "4 beams look for the likeliest answer and a temperature of 0.7 draws one by chance; "
            "give beams=1 or temperature=0",
        ),
        (
            {"top_k": 4},
            "top_k=4 is for answers drawn by chance and the temperature is 0; give temperature=1 or top_k=0",
        ),
        ({"beams": 4, "top_p": 0.5}, "top_p=0.5 is for answers drawn by chance and the temperature is 0"),
        ({"min_p": 0.5}, "min_p=0.5 is for answers drawn by chance and the temperature is 0"),
    ],
)
def test_a_spec_that_cannot_be_followed_is_refused_in_one_sentence(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        Decoding(**values)
    assert str(refusal(error.value, "decoding", Decoding)).startswith(said)
    if "temperature" not in values and "beam" not in values:
        with pytest.raises(Refusal):
            Decoding().but(**values)


def test_who_asks_for_one_way_to_search_puts_the_other_aside() -> None:
    weighed, warm = Decoding(beams=5, length_penalty=0.6, max_new_tokens=9), Decoding(**WARM, max_new_tokens=9)
    assert weighed.but(temperature=0.5) == Decoding(temperature=0.5, max_new_tokens=9)
    assert weighed.but(beams=2) == Decoding(beams=2, length_penalty=0.6, max_new_tokens=9)
    assert warm.but(temperature=0.0) == Decoding(max_new_tokens=9)
    assert warm.but(beams=3) == Decoding(beams=3, max_new_tokens=9)
    assert warm.but(top_k=3) == Decoding(**WARM | {"top_k": 3}, max_new_tokens=9)
    assert warm.but() == warm
    with pytest.raises(Refusal, match="give beams=1 or temperature=0"):
        warm.but(beams=3, temperature=1.0)
    with pytest.raises(Refusal, match="temperature is 0"):
        warm.but(beams=3, top_k=3)
