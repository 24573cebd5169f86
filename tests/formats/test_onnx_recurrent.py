"""Recurrent translators as ONNX graphs: onnxruntime writes greedily what the model writes, at any length."""

import itertools

import numpy as np
import pytest
import torch

import heedful
from heedful.decoding import begin
from heedful.decoding.greedy import greedy
from heedful.models.specs import SPECIAL

VOCAB, NEW = 17, 7
KINDS = {  # an export takes seconds: these have every part, and tell every gate from the others
    "looking back at states of both ways": ("lstm", "general", {"context": "states", "depth": 1}),
    "going on from the last state, read backwards": (
        "gru",
        "none",
        {"context": "last", "both_ways": False, "reverse": True, "depth": 1},
    ),
}


def translator(cell, mechanism, encoder):
    """A model whose weights are enlarged, so that it is sure of itself."""
    torch.manual_seed(3)
    sizes = {"vocab": VOCAB, "width": 8, "cell": cell}
    made = heedful.build(
        "composite",
        encoder={"family": "recurrent_encoder", **sizes, **encoder},
        decoder={"family": "recurrent_decoder", **sizes, "mechanism": mechanism},
    ).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(4.0 if weight.dim() > 1 else 1.0)
    return made


def sources(rows, length):
    drawn = torch.randint(4, VOCAB, (rows, length), generator=torch.Generator().manual_seed(length))
    drawn[-1, 1 + length // 2 :] = SPECIAL.pad
    return drawn


def written_by_onnxruntime(folder, source):
    """What onnxruntime writes greedily by the two graphs."""
    onnxruntime = pytest.importorskip("onnxruntime")
    reader, writer = (
        onnxruntime.InferenceSession(folder / f"{name}_model.onnx", providers=["CPUExecutionProvider"])
        for name in ("encoder", "decoder")
    )
    states, state = reader.run(None, {"input_ids": source.numpy()})
    token, made = np.full((len(source), 1), SPECIAL.begin), []
    for _ in range(NEW):
        mask = (source != SPECIAL.pad).long().numpy()
        known = {"input_ids": token, "state": state, "encoder_hidden_states": states, "encoder_attention_mask": mask}
        scores, state = writer.run(None, {one.name: known[one.name] for one in writer.get_inputs()})
        scores[:, list(SPECIAL.never)] = -np.inf
        token = scores.argmax(-1)[:, None]
        made.append(token)
    rows = np.concatenate(made, 1).tolist()
    return [tuple(itertools.takewhile(lambda one: one != SPECIAL.end, row)) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_writes_greedily_what_the_model_writes_at_other_lengths(tmp_path, kind):
    model, said = translator(*KINDS[kind]), set()
    heedful.save(model, tmp_path / "there", layout="onnx")
    graphs = sorted(path.name for path in (tmp_path / "there").glob("*.onnx"))
    assert graphs == ["decoder_model.onnx", "encoder_model.onnx"]
    for rows, length in ((1, 1), (3, 9), (4, 5)):
        source = sources(rows, length)
        ours = greedy(model, begin(model, {"source": source}), max_new_tokens=NEW)
        assert written_by_onnxruntime(tmp_path / "there", source) == [one.tokens for one in ours]
        said |= {one.tokens for one in ours}
    assert len(said) > 3, "whatever is read, the same is written"
