"""Models as ONNX graphs: the same scores in onnxruntime, at other sizes than those that were traced."""

from types import SimpleNamespace

import pytest
import torch

import heedful
from heedful.errors import Failure, Refusal
from heedful.formats import onnx

CLOSE = {"rtol": 0.0, "atol": 1e-5}
VOCAB, LENGTH = 31, 12
SMALL = {"vocab": VOCAB, "width": 12, "heads": 2, "depth": 1, "hidden": 20, "length": LENGTH}
SIZES = [(1, 1, 1), (3, LENGTH, 2), (4, 2, LENGTH), (2, 7, 5)]


def tokens(rows, length, pad=None):
    drawn = torch.randint(3, VOCAB, (rows, length), generator=torch.Generator().manual_seed(length))
    if pad is not None:
        drawn[-1, 1 + length // 2 :] = pad
    return drawn


def run(path, **inputs):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [out] = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    return torch.from_numpy(out)


def stirred(family, **numbers):
    torch.manual_seed(0)
    model = heedful.build(family, **SMALL | numbers)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return model


@torch.no_grad()
def test_a_decoder_is_one_graph_of_any_batch_and_length(tmp_path):
    model = stirred("gpt", dropout=0.3).train()
    heedful.save(model, tmp_path / "there", layout="onnx")
    assert model.training and [path.name for path in (tmp_path / "there").iterdir()] == ["model.onnx"]
    model.eval()
    for rows, length, _ in SIZES:
        given = tokens(rows, length)
        torch.testing.assert_close(run(tmp_path / "there" / "model.onnx", tokens=given), model(given), **CLOSE)


@torch.no_grad()
def test_an_encoder_is_one_graph_that_is_told_segments_and_tells_padding(tmp_path):
    model = stirred("bert", output="classes", classes=4).eval()
    heedful.save(model, tmp_path / "there", layout="onnx")
    assert not any(part.training for part in model.modules())
    for rows, length, _ in SIZES:
        given, segments = tokens(rows, length, pad=model.spec.pad), torch.arange(length).expand(rows, -1) % 2
        out = run(tmp_path / "there" / "model.onnx", tokens=given, segments=segments)
        torch.testing.assert_close(out, model(given, segments=segments), **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize(("output", "classes"), [("classes", 4), ("answer", None)])
def test_an_encoder_decoder_that_is_asked_something_is_one_graph(tmp_path, output, classes):
    model = stirred("bart", output=output, classes=classes).eval()
    heedful.save(model, tmp_path / "there", layout="onnx")
    for rows, length, _ in SIZES:
        given = tokens(rows, length, pad=model.spec.pad)
        made, true = run(tmp_path / "there" / "model.onnx", tokens=given), model(given)
        there = given != model.spec.pad if output == "answer" else slice(None)  # what padding says is nobody's business
        torch.testing.assert_close(made[there], true[there], **CLOSE)


@torch.no_grad()
def test_an_encoder_decoder_is_two_graphs_and_padding_is_not_seen(tmp_path):
    model = stirred("transformer").eval()
    heedful.save(model, tmp_path / "there", layout="onnx")
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["decoder.onnx", "encoder.onnx"]
    for rows, length, written in SIZES:
        source, target = tokens(rows, length, pad=0), tokens(rows, written)
        states = run(tmp_path / "there" / "encoder.onnx", source=source)
        scores = run(tmp_path / "there" / "decoder.onnx", target=target, states=states, source=source)
        torch.testing.assert_close(states, model.encode(source).states, **CLOSE)
        torch.testing.assert_close(scores, model(source, target), **CLOSE)


def test_without_its_packages_it_says_how_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setattr(onnx, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"'onnx' needs onnx and onnxscript; .* pip install heedful\[onnx\]"):
        heedful.save(stirred("gpt"), tmp_path / "there", layout="onnx")
    assert not (tmp_path / "there").exists()


def test_a_model_that_reads_no_text_is_refused(tmp_path):
    with pytest.raises(Refusal, match="family 'forecaster' is not written as ONNX"):
        heedful.save(heedful.build("forecaster", channels=2), tmp_path / "there", layout="onnx")


def test_a_size_that_would_be_taken_for_good_is_a_failure(monkeypatch, tmp_path):
    graph = SimpleNamespace(inputs=[SimpleNamespace(name="tokens", shape=["batch", 3])])
    made = SimpleNamespace(model=SimpleNamespace(graph=graph))
    monkeypatch.setattr(torch.onnx, "export", lambda *given, **how: made)
    with pytest.raises(Failure, match=r"model.onnx: torch would write tokens for one size alone"):
        heedful.save(stirred("gpt"), tmp_path / "there", layout="onnx")
