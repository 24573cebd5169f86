"""Models as ONNX graphs: the same scores in onnxruntime, at other sizes than those that were traced."""

import copy
import json
import runpy
import sys
from types import SimpleNamespace

import pytest
import torch

import heedful
import heedful.tokenizers.hf_folders
from heedful.decoding import Decoding, search
from heedful.errors import Failure, Refusal
from heedful.formats import native, onnx
from heedful.models.specs import BEGIN, END
from heedful.tokenizers import train

LETTERS = train(["abcdefghijklmnopqrstuvwxyz "], "characters")  # as many as VOCAB
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


def there_in(given, pad):
    return (given != pad).long()


def asked_by_sample(folder, text, capsys, monkeypatch):
    """What the program beside a graph says of an input; it imports nothing of heedful."""
    program = (folder / "sample.py").read_text(encoding="utf-8")
    assert "heedful" not in program and len(program.splitlines()) <= 12
    monkeypatch.setattr(sys, "argv", ["sample.py", text])
    runpy.run_path(str(folder / "sample.py"))
    return capsys.readouterr().out.removesuffix("\n")


@torch.no_grad()
def test_a_decoder_is_one_graph_of_any_batch_and_length_and_goes_on_with_prompts(tmp_path, capsys, monkeypatch):
    model = stirred("gpt", dropout=0.3, length=40).train()
    vars(model)["tokenizer"] = LETTERS
    heedful.save(model, tmp_path / "there", layout="onnx")
    files = ["config.json", "manifest.json", "model.onnx", "sample.py", "spec.json", "tokenizer.json"]
    assert model.training and sorted(path.name for path in (tmp_path / "there").iterdir()) == files
    model.eval()
    for rows, length, _ in SIZES:
        given = tokens(rows, length)
        told = {"input_ids": given, "attention_mask": torch.ones_like(given)}
        torch.testing.assert_close(run(tmp_path / "there" / "model.onnx", **told), model(given), **CLOSE)
    again = heedful.load(tmp_path / "there")
    prompts = [[5, 6, 7], [8, 9]]
    for how in ({}, {"beams": 2}):
        wanted = heedful.generate(model, prompts, max_new_tokens=5, **how)
        assert heedful.generate(again, prompts, max_new_tokens=5, **how) == wanted
    said = asked_by_sample(tmp_path / "there", "abc", capsys, monkeypatch)
    monkeypatch.setattr(type(model.spec), "ends", ())
    assert said == "abc" + heedful.generate(model, "abc", max_new_tokens=20)


@torch.no_grad()
def test_an_encoder_is_one_graph_that_is_told_segments_and_padding(tmp_path, capsys, monkeypatch):
    model = stirred("bert", output="classes", classes=4, labels=["w", "x", "y", "z"]).eval()
    vars(model)["tokenizer"] = LETTERS
    heedful.save(model, tmp_path / "there", layout="onnx")
    assert not any(part.training for part in model.modules())
    again = heedful.load(tmp_path / "there")
    for rows, length, _ in SIZES:
        given, segments = tokens(rows, length, pad=model.spec.pad), torch.arange(length).expand(rows, -1) % 2
        told = {"attention_mask": there_in(given, model.spec.pad), "token_type_ids": segments}
        out = run(tmp_path / "there" / "model.onnx", input_ids=given, **told)
        torch.testing.assert_close(out, model(given, segments=segments), **CLOSE)
        torch.testing.assert_close(again(given, segments=segments), out, **CLOSE)
    said = asked_by_sample(tmp_path / "there", "abc", capsys, monkeypatch)
    joined = heedful.tokenizers.hf_folders.read_folder(tmp_path / "there").join([("abc",)])[0]
    assert said == "wxyz"[int(model(torch.tensor([joined.ids])).argmax())]
    for asked in (lambda: copy.deepcopy(again), lambda: native.convert(tmp_path / "there", tmp_path / "new", "hf")):
        with pytest.raises(Refusal, match=r"(it was|they were) made of"):
            asked()


@torch.no_grad()
@pytest.mark.parametrize(("output", "classes"), [("classes", 4), ("answer", None)])
def test_an_encoder_decoder_that_is_asked_something_is_one_graph(tmp_path, output, classes):
    model = stirred("bart", output=output, classes=classes).eval()
    heedful.save(model, tmp_path / "there", layout="onnx")
    again = heedful.load(tmp_path / "there")
    for rows, length, _ in SIZES:
        given = tokens(rows, length, pad=model.spec.pad)
        made, true = again(given), model(given)
        there = given != model.spec.pad if output == "answer" else slice(None)  # what padding says is nobody's business
        torch.testing.assert_close(made[there], true[there], **CLOSE)


@torch.no_grad()
def test_an_encoder_decoder_is_two_graphs_and_padding_is_not_seen(tmp_path, capsys, monkeypatch):
    model = stirred("transformer", length=120).eval()
    vars(model)["tokenizer"] = LETTERS
    heedful.save(model, tmp_path / "there", layout="onnx")
    for rows, length, written in SIZES:
        source, target = tokens(rows, length, pad=0), tokens(rows, written)
        there = there_in(source, 0)
        states = run(tmp_path / "there" / "encoder_model.onnx", input_ids=source, attention_mask=there)
        told = {"encoder_attention_mask": there, "encoder_hidden_states": states}
        scores = run(tmp_path / "there" / "decoder_model.onnx", input_ids=target, **told)
        torch.testing.assert_close(states[there > 0], model.encode(source).states[there > 0], **CLOSE)
        torch.testing.assert_close(scores, model(source, target), **CLOSE)
    again = heedful.load(tmp_path / "there")
    batch = {"source": tokens(3, 7, pad=0)}
    for how in (Decoding(max_new_tokens=6), Decoding(max_new_tokens=6, beams=3)):
        one, two = (search(asked, batch, how) for asked in (model, again))
        assert [best.tokens for [best] in one] == [best.tokens for [best] in two]
    source, written = torch.tensor([[*LETTERS.encode("abc"), END]]), [BEGIN]
    while written[-1] != END and len(written) < 99:
        written.append(int(model(source, torch.tensor([written]))[0, -1].argmax()))
    assert asked_by_sample(tmp_path / "there", "abc", capsys, monkeypatch) == LETTERS.decode(written[1:])


@torch.no_grad()
@pytest.mark.parametrize("family", ["vit", "resnet"])
def test_a_classifier_of_images_is_one_graph_that_takes_what_its_processor_gives(tmp_path, family):
    own = {"patch": 8, "width": 8, "heads": 2, "depth": 1} if family == "vit" else {"width": 8, "depths": [1, 1]}
    scale = {"mean": [0.5, 0.4, 0.3], "deviation": [0.2, 0.3, 0.4]}
    torch.manual_seed(0)
    model = heedful.build(family, channels=3, high=16, wide=16, classes=3, **own, **scale).eval()
    heedful.save(model, tmp_path / "there", layout="onnx")
    images = torch.rand(3, 3, 16, 16)
    said = json.loads((tmp_path / "there" / "preprocessor_config.json").read_text())
    mean, deviation = torch.tensor([said["image_mean"], said["image_std"]])[..., None, None]
    made = run(tmp_path / "there" / "model.onnx", pixel_values=(images - mean) / deviation)
    torch.testing.assert_close(made, model(images), **CLOSE)
    torch.testing.assert_close(heedful.load(tmp_path / "there")(images[:1]), model(images[:1]), **CLOSE)


def test_a_broken_graph_is_refused(tmp_path):
    (tmp_path / "spec.json").write_text(stirred("gpt").spec.model_dump_json())
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(Refusal, match=r"model.onnx cannot be read as ONNX: .*; convert the model again"):
        heedful.load(tmp_path)


def test_without_its_packages_it_says_how_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setattr(onnx, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"'onnx' needs onnx and onnxscript; .* pip install heedful\[onnx\]"):
        heedful.save(stirred("gpt"), tmp_path / "there", layout="onnx")
    assert not (tmp_path / "there").exists()


def test_a_model_that_reads_no_text_is_refused(tmp_path):
    with pytest.raises(Refusal, match="family 'forecaster' is not written as ONNX"):
        heedful.save(heedful.build("forecaster", channels=2), tmp_path / "there", layout="onnx")


def test_a_size_that_would_be_taken_for_good_is_a_failure(monkeypatch, tmp_path):
    graph = SimpleNamespace(inputs=[SimpleNamespace(name="input_ids", shape=["batch", 3])])
    made = SimpleNamespace(model=SimpleNamespace(graph=graph))
    monkeypatch.setattr(torch.onnx, "export", lambda *given, **how: made)
    with pytest.raises(Failure, match=r"model.onnx: torch would write input_ids for one size alone"):
        heedful.save(stirred("gpt"), tmp_path / "there", layout="onnx")
