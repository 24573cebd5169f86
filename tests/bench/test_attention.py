"""`heedful bench attention`: every fast kind at every length, how it grows, and where it overtakes full attention."""

import gc
import json

import pytest
from PIL import Image

from heedful.bench import attention, recorded
from heedful.bench.attention import Growth
from heedful.cli import main
from heedful.cli.bench import measurable
from heedful.models import kinds

SMALL = {"lengths": [32, 64], "heads": 2, "width": 4}


@pytest.fixture(autouse=True)
def of_small_size(monkeypatch) -> None:
    monkeypatch.setattr(attention, "CPU", SMALL)
    monkeypatch.setattr(attention, "NEAR", 64)
    monkeypatch.setattr(attention.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gc, "collect", lambda: 0)


def test_every_fast_kind_is_measured_in_both_directions(tmp_path, capsys):
    picture = tmp_path / "growth.png"
    with pytest.raises(SystemExit) as left:
        main(["bench", "attention", "--rounds", "1", "--json", str(tmp_path / "found.json"), "--plot", str(picture)])
    with Image.open(picture) as drawn:
        assert drawn.size[0] > 1000
    assert left.value.code == 0
    forward, both = json.loads((tmp_path / "found.json").read_text())["cases"]
    fast = {n for n, kind in kinds.every().items() if kind.role != "bias" and kind.card.tier == "A"}
    assert set(forward["kinds"]) == set(both["kinds"]) == fast - set(attention.ALIKE)
    for row in (*forward["kinds"].values(), *both["kinds"].values()):
        assert [at["length"] for at in row["lengths"]] == SMALL["lengths"]
        assert all(len(at["seconds"]) == 1 and at["bytes"] >= 0 for at in row["lengths"])
    assert forward["kinds"]["softmax"]["from_softmax"] == 0
    assert forward["kinds"]["linear"]["from_softmax"] > 0.01
    assert "performer" in capsys.readouterr().out


def grown(**seconds):
    lengths = [2048, 4096, 8192, 16384]
    growth = Growth("forward and backward", "1 head of 1", "cpu", lengths)
    for kind, one in seconds.items():
        growth.seconds[kind] = {n: [one(n)] for n in lengths}
        growth.memory[kind] = dict.fromkeys(lengths, 0)
    return growth


def test_growth_is_the_power_of_the_length_and_overtaking_lasts():
    growth = grown(softmax=lambda n: 1e-9 * n**2, linear=lambda n: 5e-6 * n, never=lambda n: 1.0, odd=lambda n: 4e-3)
    assert growth.exponent("softmax") == pytest.approx(2.0)
    assert growth.exponent("linear") == pytest.approx(1.0)
    assert growth.overtakes("linear") == 8192
    assert growth.overtakes("never") is None
    assert growth.overtakes("odd") == 2048
    assert "8,192" in growth.table("softmax")


def test_a_kind_that_takes_too_long_is_left_out_of_longer_ones(monkeypatch):
    monkeypatch.setattr(attention, "PATIENCE", 0.0)
    growth = attention.measured("cpu", SMALL, False, 1, lambda: None)
    assert all(list(times) == [32] for times in growth.seconds.values())
    assert set(growth.why) == set(growth.seconds)


def test_records_are_no_bench():
    assert "attention" in measurable() and "recorded" not in measurable()


def test_what_was_recorded_is_told_of_each_kind_and_device(tmp_path, monkeypatch, capsys):
    growth = grown(softmax=lambda n: 1e-9 * n**2, linear=lambda n: 5e-6 * n, performer=lambda n: 1.0)
    record = {"cases": [{"bench": "attention", **growth.to_json("softmax")}]}
    (tmp_path / "cpu.json").write_text(json.dumps(record))
    monkeypatch.setattr(recorded, "RECORDS", tmp_path)

    def said(*given):
        with pytest.raises(SystemExit):
            main(["attention", *given])
        return capsys.readouterr().out

    rows = {row["name"]: row["overtakes"] for row in json.loads(said("list", "--json"))}
    assert rows["linear"] == {"cpu": {"forward and backward": 8192}, "cuda": {}}
    assert rows["performer"]["cpu"] == {"forward and backward": "never"}
    assert rows["luna"] == {"cpu": {}, "cuda": {}}
    lines = {line.split()[0]: line for line in said("list").splitlines()}
    assert "cpu 8,192" in lines["linear"] and "gpu not measured" in lines["linear"]
    assert "cpu never" in lines["performer"]

    def pays(name):
        return [line for line in said("explain", name).splitlines() if line.startswith("pays")]

    assert pays("linear") == ["pays    cpu: from T = 8,192 up, forward and backward; gpu: not measured"]
    assert pays("performer") == ["pays    cpu: never up to T = 16,384, forward and backward; gpu: not measured"]
    assert pays("realformer") == [
        "pays    not in time: it costs as much as full attention or more; if at all, in what it learns"
    ]
