"""Word alignments of a trained toy: links between words that are there, by the head that brute force finds best."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.encoded_pairs import Encoded
from heedful.data.formats import pharaoh
from heedful.data.parallel_sample import Pair
from heedful.data.splits import Splits
from heedful.looking import look
from heedful.metrics.alignment_error import Gaze
from heedful.models.text.transformer import BEGIN, END
from heedful.pipelines.translation_pipeline import align_words
from heedful.tasks.text.translation import TASK
from heedful.tasks.work import Work
from tests.answered import plain
from tests.tasks.conftest import Translator

Links = set[tuple[int, int]]
WORDS = st.sampled_from(["dog", "dogs", "The", "runs", ".", "bate", "ribazu", "leme", "Straße", "日本", "x"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=9).map(" ".join)
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def error_rate(found: Sequence[Links], sure: Sequence[Links]) -> float:
    """Och and Ney (2003), where every link is sure."""
    hits = sum(len(a & s) for a, s in zip(found, sure, strict=True))
    return 1 - 2 * hits / (sum(map(len, found)) + sum(map(len, sure)))


def word_of(translator: Translator, ids: Sequence[int]) -> list[int]:
    """The number of the word of each sub-word, told by how many blanks came before it."""
    pieces = [translator.task.tokenizer.decode(ids[: end + 1]) for end in range(len(ids))]
    return [len(text.split()) - 1 for text in pieces]


@torch.no_grad()
def by_hand(translator: Translator, sample: Encoded) -> dict[Gaze, Links]:
    """The links of every layer, head and row of a sample, alone and in plain loops."""
    source, target = list(sample.source), list(sample.target)
    translator.model.eval()
    with look(translator.model) as seen:
        translator.model(torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *target]]))
    of_source, of_target = word_of(translator, source), word_of(translator, target)
    found: dict[Gaze, Links] = {}
    for layer in (path for path in seen.paths if path.endswith("cross")):
        weights = seen.weights(layer)[0]  # H T S
        for head, rows in [*enumerate(weights), (None, weights.mean(0))]:
            for read in (False, True):
                links: Links = set()
                for word in range(of_target[-1] + 1):
                    places = [at + read for at, mine in enumerate(of_target) if mine == word]
                    given = rows[places].mean(0)
                    sums = [
                        sum(float(given[at]) for at, mine in enumerate(of_source) if mine == other)
                        for other in range(of_source[-1] + 1)
                    ]
                    links.add((max(range(len(sums)), key=sums.__getitem__), word))
                found[Gaze(layer, head, read)] = links
    return found


def test_the_gaze_that_was_chosen_is_the_best_of_all_on_validation_data(translator: Translator) -> None:
    samples = translator.splits.valid
    found = [by_hand(translator, sample) for sample in samples]
    sure = [set(sample.texts.links.sure) for sample in samples if sample.texts.links]
    rates = {gaze: error_rate([one[gaze] for one in found], sure) for gaze in found[0]}
    assert len(rates) == 2 * 5 * 2  # layers, heads and their mean, rows
    assert translator.learned.gaze is not None
    assert rates[translator.learned.gaze] == pytest.approx(min(rates.values()), abs=1e-3)
    assert sorted(rates.values())[-1] > 0.5  # and it matters which


def test_settling_again_chooses_the_same_and_needs_no_alignments(translator: Translator) -> None:
    fresh = Work(TASK, replace(translator.learned, gaze=None))
    other = fresh.calibrated(translator.model, translator.splits)
    assert other.learned == translator.learned and fresh.learned.gaze is None
    bare = [Pair(sample.texts.source, sample.texts.target) for sample in translator.splits.valid]
    taught = [Pair(sample.texts.source, sample.texts.target) for sample in translator.splits.train[:1500]]
    splits = TASK.encode(Splits(taught, bare, bare), translator.learned)
    other = fresh.calibrated(translator.model, splits)  # by a lexicon, learned from the pairs
    sure = [set(s.texts.links.sure) for s in translator.splits.test if s.texts.links]
    found = align_words(translator.model, translator.splits.test, other.learned)  # type: ignore[arg-type]
    assert error_rate([set(one.links) for one in found], sure) < 0.25


def test_alignments_of_the_toy_are_seldom_wrong(translator: Translator) -> None:
    pairs = list(zip(translator.sources, translator.targets, strict=True))
    found = [set(one.links) for one in translator.align(pairs)]
    sure = [set(sample.texts.links.sure) for sample in translator.splits.test if sample.texts.links]
    assert error_rate(found, sure) < 0.25
    shifted = [{(s, (t + 1) % 4) for s, t in links} for links in found]
    assert error_rate(shifted, sure) > 0.5


@given(st.lists(st.tuples(SENTENCES | ANYTHING, st.none() | SENTENCES | ANYTHING), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_links_are_between_words_that_are_there_for_any_pairs(
    translator: Translator, pairs: list[tuple[str, str | None]]
) -> None:
    found = list(translator.align(pairs))
    assert len(found) == len(pairs)
    for (source, target), one in zip(pairs, found, strict=True):
        assert list(one.source) == source.split()
        assert target is None or list(one.target) == target.split()
        assert all(0 <= s < len(one.source) and 0 <= t < len(one.target) for s, t in one.links)
        assert len({t for _, t in one.links}) == len(one.links)  # a target word is linked once
        assert one.matrix.shape == (len(one.target), len(one.source))
        assert pharaoh.write(one.links) == " ".join(f"{s}-{t}" for s, t in sorted(one.links))


def test_pairs_are_aligned_in_order_and_as_they_are_alone(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = list(zip(translator.sources[:30], translator.targets[:30], strict=True))
    together = list(translator.align(pairs))
    monkeypatch.setattr("heedful.pipelines.translation_pipeline.TOGETHER", 7)
    monkeypatch.setattr("heedful.pipelines.translation_pipeline.ROOM", 100)
    for one, other in zip(together, translator.align(pairs), strict=True):
        assert (one.source, one.target, one.links) == (other.source, other.target, other.links)
        torch.testing.assert_close(one.matrix, other.matrix, rtol=0, atol=1e-5)
    for pair, one in zip(pairs[:6], together, strict=False):
        assert next(translator.align([pair])).links == one.links


def test_a_source_without_a_target_is_translated_first(translator: Translator) -> None:
    source = translator.sources[0]
    (written,) = plain(translator.task.predict(translator.model, [source]))
    mixed = list(translator.align([(source, None), (source, "bate ."), (source, None)]))
    assert [" ".join(one.target) for one in mixed] == [written, "bate .", written]
    (given_target,) = translator.align([(source, written)])
    assert mixed[0].links == mixed[2].links == given_target.links


def test_without_a_gaze_the_mean_of_the_last_layer_is_looked_at(translator: Translator) -> None:
    pairs = list(zip(translator.sources[:3], translator.targets[:3], strict=True))
    bare, meant = (
        translator.pipeline.align(translator.model, pairs, replace(translator.learned, gaze=gaze))
        for gaze in (None, Gaze("decoder.blocks.1.cross", None, False))
    )
    for one, other in zip(bare, meant, strict=True):
        assert torch.equal(one.matrix, other.matrix)
