"""Sample programs: about ten lines beside ONNX graphs that ask them with onnxruntime, and without heedful."""

from __future__ import annotations

from typing import Any

from torch import nn

from heedful.data.images.decode import MODES
from heedful.formats import onnx_recurrent
from heedful.models.heads_asked import CHOICES, NEXT, word_asked
from heedful.models.text.encoder_decoder import EncoderDecoder
from heedful.models.vision.image_spec import ImageSpec

HEAD = """import json, sys, numpy as np, onnxruntime
from pathlib import Path
{imports}
here = Path(__file__).parent
"""
TEXT = """session = onnxruntime.InferenceSession(here / "model.onnx")
encoded = Tokenizer.from_file(str(here / "tokenizer.json")).encode(*sys.argv[1:3])
fields = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
given = {one.name: np.array([fields[one.name]]) for one in session.get_inputs()}
"""
IMAGE = """session = onnxruntime.InferenceSession(here / "model.onnx")
image = ImageOps.fit(Image.open(sys.argv[1]).convert({mode!r}), {size}, Image.Resampling.BICUBIC)
pixels = np.asarray(image, dtype=np.float32).reshape({shape}) / 255
given = {{"pixel_values": ((pixels - np.float32({mean})) / np.float32({deviation})).transpose(2, 0, 1)[None]}}
"""
CHOSEN = """labels = json.loads((here / "config.json").read_text(encoding="utf-8")).get("id2label", {})
print(*(labels.get(str(at), at) for at in np.atleast_1d(session.run(None, given)[0][0].argmax(-1))))
"""
NUMBERS = "print(*(one[0].tolist() for one in session.run(None, given)))\n"
DECODER = """tokenizer = Tokenizer.from_file(str(here / "tokenizer.json"))
session, ids = onnxruntime.InferenceSession(here / "model.onnx"), tokenizer.encode(sys.argv[1]).ids
for _ in range(20):
    given = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
    ids.append(int(session.run(None, given)[0][0, -1].argmax()))
print(tokenizer.decode(ids))
"""
BOTH = """tokenizer = Tokenizer.from_file(str(here / "tokenizer.json"))
read, write = (onnxruntime.InferenceSession(here / f"{{name}}_model.onnx") for name in ("encoder", "decoder"))
source = np.array([[*tokenizer.encode(sys.argv[1]).ids, {end}]])
states = read.run(None, {{"input_ids": source, "attention_mask": np.ones_like(source)}})[0]
ids, kept = [{begin}], {{"encoder_hidden_states": states, "encoder_attention_mask": np.ones_like(source)}}
while ids[-1] != {end} and len(ids) < 99:
    ids.append(int(write.run(None, {{"input_ids": np.array([ids]), **kept}})[0][0, -1].argmax()))
print(tokenizer.decode(ids[1:]))
"""


def sample_program(model: nn.Module) -> str:
    """The program that asks the graphs of a model."""
    spec: Any = model.spec
    if isinstance(spec, ImageSpec):
        shape = (spec.high, spec.wide, spec.channels)
        mean, deviation = spec.mean or [0.0] * spec.channels, spec.deviation or [1.0] * spec.channels
        scale = {"mean": mean, "deviation": deviation, "shape": shape}
        read = IMAGE.format(mode=MODES.get(spec.channels, "RGB"), size=(spec.wide, spec.high), **scale)
        return HEAD.format(imports="from PIL import Image, ImageOps") + read + (CHOSEN if spec.classes else NUMBERS)  # type: ignore[attr-defined]
    head, word = HEAD.format(imports="from tokenizers import Tokenizer"), word_asked(spec)
    if word != NEXT:
        return head + TEXT + (CHOSEN if word in CHOICES else NUMBERS)
    if onnx_recurrent.serves(model):
        return head + onnx_recurrent.SAMPLE.format(begin=model.special.begin, end=model.special.end)  # type: ignore[union-attr]
    if isinstance(model, EncoderDecoder):
        return head + BOTH.format(begin=model.special.begin, end=model.special.end)
    return head + DECODER
