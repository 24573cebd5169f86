"""A model named by `hub:` is the one in the hub's cache; nothing is fetched where HF_HUB_OFFLINE is set."""

import os
import shutil
import sys
from pathlib import Path

import huggingface_hub
import pytest
import torch
from huggingface_hub import constants

import heedful
from heedful.errors import Refusal

SHA = "a" * 40


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache as the hub's client lays it out, with one model in it, and no network."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    heedful.save(heedful.build("gpt", vocab=9, width=8, heads=2, depth=1), tmp_path / "model", layout="hf")
    place = tmp_path / "hub" / "models--me--tiny"
    for folder in ("refs", "blobs", f"snapshots/{SHA}"):
        (place / folder).mkdir(parents=True)
    (place / "refs" / "main").write_text(SHA)
    for number, file in enumerate(sorted((tmp_path / "model").iterdir())):
        shutil.copy(file, place / "blobs" / str(number))
        os.symlink(f"../../blobs/{number}", place / "snapshots" / SHA / file.name)
    return place


def test_a_model_of_the_hub_is_read_through_the_links_of_its_cache(cache, tmp_path):
    tokens, own = torch.arange(9)[None], heedful.load(tmp_path / "model")
    for name in ("hub:me/tiny", "hub:me/tiny@main", f"hub:me/tiny@{SHA}", cache / "snapshots" / SHA):
        assert torch.equal(heedful.load(name)(tokens), own(tokens))


def test_links_of_a_cache_lead_into_its_blobs_and_nowhere_else(cache, tmp_path):
    config = cache / "snapshots" / SHA / "config.json"
    for target in (tmp_path / "model" / "config.json", cache / "refs" / "config.json"):
        config.unlink()
        shutil.copy(tmp_path / "model" / "config.json", cache / "refs")
        os.symlink(target, config)
        with pytest.raises(Refusal, match=r"config\.json is a link that leads out of the folder"):
            heedful.load("hub:me/tiny")
    config.unlink()
    os.symlink("../../blobs/0", config)
    heedful.load("hub:me/tiny")
    (cache / "blobs").rename(tmp_path / "blobs")
    os.symlink(tmp_path / "blobs", cache / "blobs")
    with pytest.raises(Refusal, match="leads out of the folder"):
        heedful.load("hub:me/tiny")


def test_a_folder_that_only_looks_like_a_snapshot_is_no_way_out(tmp_path):
    heedful.save(heedful.build("gpt", vocab=9, width=8, heads=2, depth=1), tmp_path / "snapshots" / "x", layout="hf")
    shutil.move(tmp_path / "snapshots" / "x" / "config.json", tmp_path / "config.json")
    os.symlink("../../config.json", tmp_path / "snapshots" / "x" / "config.json")
    with pytest.raises(Refusal, match="leads out of the folder"):
        heedful.load(tmp_path / "snapshots" / "x")


@pytest.mark.usefixtures("cache")
def test_what_is_not_there_is_refused_by_name():
    with pytest.raises(Refusal, match=r"hub:me/other cannot be fetched: .*; check the name and the network, or name"):
        heedful.load("hub:me/other")
    for name in ("hub:", "hub:a/b/c", "hub:../x", "hub:a b"):
        with pytest.raises(Refusal, match=r"is no name of the hub's; write hub:OWNER/NAME|cannot be fetched"):
            heedful.load(name)


def test_without_its_client_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        Refusal, match="hub:me/tiny needs the hub's client; pip install huggingface_hub, or name a folder"
    ):
        heedful.load("hub:me/tiny")


def test_only_what_is_asked_for_is_fetched(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda name, **how: asked.append((name, how)) or str(tmp_path)
    )
    with pytest.raises(Refusal, match="holds no model"):
        heedful.load("hub:me/tiny@v1")
    with pytest.raises(Refusal, match="does not exist"):
        heedful.load("me/tiny")
    [(name, how)] = asked
    assert (name, how["revision"]) == ("me/tiny", "v1")
    assert not any(pattern.endswith((".bin", ".pt", ".py", "*")) for pattern in how["allow_patterns"])
