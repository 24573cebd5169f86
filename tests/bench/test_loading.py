"""`heedful bench loading`: a process takes little more memory for a model than its file has bytes."""

import json

import pytest

from heedful.bench import loading_bench


@pytest.mark.skipif(not loading_bench.Path("/proc/self/clear_refs").exists(), reason="the kernel's account is Linux's")
def test_a_model_takes_little_more_than_its_file(monkeypatch):
    middling = {"family": "gpt", "width": 384, "heads": 8, "depth": 6, "vocab": 12_000}  # 62 MB
    monkeypatch.setattr(loading_bench, "MODEL", middling)
    monkeypatch.setattr(loading_bench, "util", NoPeers())
    said: list[int] = []
    [(case, base)] = loading_bench.cases(1, lambda: said.append(1))
    assert set(case.bytes) == {loading_bench.OURS, loading_bench.NATIVE} and len(said) == 2
    assert all(0.9 < case.share(name) < 1.2 for name in case.bytes)
    assert f"{case.share(loading_bench.OURS):6.3f}" in case.table(base) and json.dumps(case.to_json(base))


class NoPeers:
    """As if no peer were installed."""

    @staticmethod
    def find_spec(name):
        return None
