"""The comparison with the engine alone compares the same ids, and measures memory where it is taken."""

from collections import Counter

from heedful.bench import tokenizer_bench as bench


def test_each_kind_is_measured_on_short_and_long_texts(monkeypatch):
    monkeypatch.setattr(bench, "WORDS", 1000)
    monkeypatch.setattr(bench, "SIZE", 500)
    said = []
    measured = list(bench.cases(1, lambda: said.append(1)))
    kinds = [f"tokenizer, {kind}, {name}" for kind in bench.KINDS for name in ("short lines", "long documents")]
    assert [case.name for case, _ in measured] == kinds
    assert len(said) == 6 * 3 * 2
    for case, base in measured:
        assert set(case.seconds) == {base, bench.INSIDE, bench.OURS} and base == bench.BASE
        assert case.ratio(bench.OURS, base) > 0


def test_memory_is_that_of_the_training():
    assert 20_000_000 < bench.memory("words", megabytes=1) < bench.LIMIT


def test_made_words_are_few_often_and_many_seldom():
    words = list(bench.zipf_words(20_000))
    assert len(words) == 20_000 and words == list(bench.zipf_words(20_000))
    counts = sorted(Counter(words).values(), reverse=True)
    assert counts[0] > 1000 and counts[len(counts) // 2] == 1
