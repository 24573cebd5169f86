"""`heedful bench attention`: every fast kind at every length, how it grows, and where it overtakes full attention."""

import gc
import json
import sys
from types import SimpleNamespace

import pytest
import torch
from PIL import Image

from heedful.attention import Causal, Everything
from heedful.attention.mechanisms import Linear, Linformer
from heedful.bench import attention_bench, peers, recorded
from heedful.bench.growth import Growth
from heedful.cli import main
from heedful.cli.bench_verb import measurable
from heedful.models import attention_kinds, part_tables

SMALL = {"lengths": [32, 64], "heads": 2, "width": 4}


@pytest.fixture(autouse=True)
def of_small_size(monkeypatch) -> None:
    monkeypatch.setattr(attention_bench, "CPU", SMALL)
    monkeypatch.setattr(attention_bench, "NEAR", 64)
    monkeypatch.setattr(attention_bench.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(gc, "collect", lambda: 0)


def test_every_fast_kind_is_measured_in_both_directions(tmp_path, capsys):
    picture = tmp_path / "growth.png"
    with pytest.raises(SystemExit) as left:
        main(["bench", "attention", "--rounds", "1", "--json", str(tmp_path / "found.json"), "--plot", str(picture)])
    with Image.open(picture) as drawn:
        assert drawn.size[0] > 1000
    assert left.value.code == 0
    forward, both = json.loads((tmp_path / "found.json").read_text())["cases"]
    fast = {n for n, kind in attention_bench.timed_kinds().items() if kind.role != "bias" and kind.card.tier == "A"}
    assert {"grouped", "multi_query"} < fast
    others = {"performer by performer-pytorch", "linformer by linformer", "window by local-attention"}
    assert set(forward["kinds"]) == set(both["kinds"]) == (fast - set(attention_bench.ALIKE)) | others
    for row in (*forward["kinds"].values(), *both["kinds"].values()):
        assert [at["length"] for at in row["lengths"]] == SMALL["lengths"]
        assert all(len(at["seconds"]) == 1 and at["bytes"] >= 0 for at in row["lengths"])
    assert forward["kinds"]["softmax"]["from_softmax"] == 0
    assert forward["kinds"]["strided"]["claim"] == "T^1.5"
    assert forward["kinds"]["linear"]["from_softmax"] > 0.01
    assert "performer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("kinds=windo", "unknown kind 'windo'"),
        ("lengths=65", "unknown length '65'"),
        ("sizes=64", "knows no sizes=; it takes kinds= and lengths="),
    ],
)
def test_kinds_that_cannot_be_measured_are_refused(capsys, change, said):
    with pytest.raises(SystemExit) as left:
        main(["bench", "attention", change])
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_some_kinds_are_measured_beside_softmax_and_their_peers_alone(tmp_path):
    with pytest.raises(SystemExit) as left:
        main(
            [
                "bench",
                "attention",
                "kinds=window,linear",
                "lengths=64",
                "--rounds",
                "1",
                "--json",
                str(tmp_path / "found.json"),
            ]
        )
    assert left.value.code == 0
    for case in json.loads((tmp_path / "found.json").read_text())["cases"]:
        assert all([at["length"] for at in row["lengths"]] == [64] for row in case["kinds"].values())
        assert set(case["kinds"]) == {"softmax", "window", "linear", "window by local-attention"}


def test_every_kind_can_be_measured_and_what_is_no_function_of_heads_as_layers(tmp_path):
    with pytest.raises(SystemExit) as left:
        main(["bench", "attention", "kinds=all", "lengths=64", "--rounds", "1", "--json", str(tmp_path / "found.json")])
    assert left.value.code == 0
    cases = json.loads((tmp_path / "found.json").read_text())["cases"]
    assert [case["direction"] for case in cases] == ["forward", "forward and backward"] * 2
    named = [{name for name in case["kinds"] if " by " not in name} for case in cases]
    assert named[0] == named[1] and named[2] == named[3] and named[0] & named[2] == {"softmax"}
    assert named[0] | named[2] == set(attention_bench.timed_kinds())
    assert {"luna", "isab", "routed", "collaborative"} < named[2] and {"alibi", "rfa", "multi_query"} < named[0]


def heads_of(seed, length, width=4):
    return [torch.randn(1, 2, length, width, generator=torch.Generator().manual_seed(seed + n)) for n in range(3)]


def test_peers_have_the_sizes_that_ours_are_timed_with():
    there = [peers.PEERS[name] for name in peers.packages("cpu")]
    made = {peer.kind: peers.place_peer(peer.make, 2, 4, 64, "cpu") for peer in there}
    for kind, of_theirs in {"performer": made["performer"].nb_features, "linformer": made["linformer"].layer.k}.items():
        ours = part_tables.mechanism(
            attention_kinds.kind_named(kind).word(**attention_bench.sizes_of_kind(kind, 64)), 2, 4, 64
        )
        assert of_theirs in [one for part in (*ours.parameters(), *ours.buffers()) for one in part.shape]
    assert made["window"].window_size == attention_bench.sizes_of_kind("window", 64)["size"]


def test_what_the_linformer_package_is_handed_is_looked_at():
    q, k, v = heads_of(0, 7)
    theirs, ours = peers.Shortened(2, 4, 7), Linformer(7, peers.RANK)
    with torch.no_grad():
        ours.shorten.copy_(torch.stack((theirs.layer.proj_k.mT, theirs.layer.proj_v.mT)))
    torch.testing.assert_close(theirs(q, k, v), ours(q, k, v, Everything().over(q[:, 0])))


def test_flash_linear_attention_is_asked_for_what_ours_gives(monkeypatch):
    def chunk_linear_attn(q, k, v, scale=None, initial_state=None, output_final_state=False, normalize=True):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # as its own words say: B T H D
        weights = (scale * q @ k.mT).tril()
        return (weights @ v / weights.sum(-1, keepdim=True)).transpose(1, 2), None

    monkeypatch.setitem(sys.modules, "fla.ops.linear_attn", SimpleNamespace(chunk_linear_attn=chunk_linear_attn))
    q, k, v = heads_of(0, 9)
    torch.testing.assert_close(peers.Chunked(2, 4, 9)(q, k, v), Linear()(q, k, v, Causal().over(q[:, 0])))
    assert "flash-linear-attention" in peers.packages("cuda") and "flash-linear-attention" not in peers.packages("cpu")


def test_a_peer_that_cannot_be_imported_is_said_to_be_so(monkeypatch):
    def broken(*given):
        raise ImportError("No module named 'distutils'")

    monkeypatch.setattr(peers, "PEERS", {"linformer": peers.Peer("linformer", broken)})
    growth = attention_bench.measure_growth(
        "cpu", {**SMALL, "lengths": [32]}, ["softmax", "linformer"], False, 1, lambda: None
    )
    assert growth.why == {"linformer by linformer": "cannot be imported: No module named 'distutils'"}
    assert "cannot be imported" in growth.table("softmax")


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
    monkeypatch.setattr(attention_bench, "PATIENCE", {"cpu": 0.0})
    growth = attention_bench.measure_growth(
        "cpu", SMALL, attention_bench.select_kinds((), [])[0], False, 1, lambda: None
    )
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

    assert pays("linear") == ["pays    cpu: from T = 8,192 up, not below, forward and backward; gpu: not measured"]
    assert pays("performer") == ["pays    cpu: never up to T = 16,384, forward and backward; gpu: not measured"]
    assert pays("realformer") == [
        "pays    not in time: it costs as much as full attention or more; if at all, in what it learns"
    ]
