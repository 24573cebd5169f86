"""`heedful bench saving`: what it measures is saved, and it says what a save costs."""

from pathlib import Path

from heedful.bench import saving_bench, translate_bench
from heedful.bench.measure import Case
from heedful.training import checkpoint
from tests.bench.test_translate import small


def test_a_save_beside_the_steps_is_measured(monkeypatch, tmp_path: Path) -> None:
    for name, value in {"VOCAB": 40, "BATCH": 3, "LENGTH": 7, "model": small}.items():
        monkeypatch.setattr(translate_bench, name, value)
        monkeypatch.setattr(saving_bench, name, value)
    monkeypatch.setattr(saving_bench.tempfile, "TemporaryDirectory", lambda: Kept(tmp_path))
    said: list[int] = []
    [(case, base)] = saving_bench.cases(2, lambda: said.append(1))
    assert isinstance(case, Case) and base == saving_bench.ALONE and "of training at one save a minute" in case.name
    assert list(case.seconds) == [saving_bench.ALONE, saving_bench.BESIDE, saving_bench.WAITED] and len(said) == 9
    [place] = checkpoint.all_of(tmp_path)
    assert checkpoint.read_checkpoint(place)[1].keys() == {"model", "average", "best", "first", "second"}


class Kept:
    """A folder that outlives its `with`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> str:
        return str(self.folder)

    def __exit__(self, *error: object) -> None:
        pass
