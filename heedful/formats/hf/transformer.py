"""The encoder-decoders that are trained here, in a layout that others have: Marian's, or Pegasus's for pre-norm ones.

Both say the same as ours but for the sines: there all of them stand before all cosines. The channels of the stream may
stand in any order, as long as all that reads or writes them agrees; so they are put into theirs.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from heedful.formats.placing import place_weights
from heedful.formats.weights import state
from heedful.models import Transformer, imagine
from heedful.models import spec as spec_of
from heedful.models.part_words import parse
from heedful.models.text.transformer import BEGIN, END, PAD
from heedful.tokenizers import Tokenizer
from heedful.tokenizers.templates import Ending

READ, WRITTEN = (1,), (0,)  # the axis of a weight along which the channels of the stream lie
AXES = {
    "table.weight": READ,
    "to_qkv.weight": READ,
    "to_q.weight": READ,
    "to_kv.weight": READ,
    "up.weight": READ,
    "matrix.weight": READ,
    "join.weight": WRITTEN,
    "join.bias": WRITTEN,
    "down.weight": WRITTEN,
    "down.bias": WRITTEN,
    **{f"norm{n}.{kind}": WRITTEN for n in ("", 1, 2, 3) for kind in ("weight", "bias")},
}


def as_public_family(model: Transformer) -> nn.Module:
    """The same model as one of a public family; what that cannot say, its layout refuses."""
    s = model.spec
    numbers = {key: value for key, value in s if key != "family"}
    name, given = parse(s.position)
    halves = name == "sine" and not given
    numbers |= {"position": "sine_halves"} if halves else {}
    numbers |= {"source_vocab": s.vocab} if not s.tied and not s.source_vocab else {}  # theirs are untied all or none
    spec = spec_of("marian", **numbers, scale_embedding=True, output_bias=False, pad=PAD, begin=BEGIN, end=END)
    names = state(imagine(spec))
    own = dict(model.state_dict())
    order = torch.cat((torch.arange(0, s.width, 2), torch.arange(1, s.width, 2)))
    tensors = {name: reorder_channels(name, own[name], order) if halves else own[name] for name in names}
    other = place_weights(spec, tensors)
    if getattr(model, "tokenizer", None) is not None:
        vars(other)["tokenizer"] = Ending(cast(Tokenizer, model.tokenizer), END)  # as sources are read here
    return other


def reorder_channels(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """A weight whose channels stand in another order."""
    for axis in AXES.get(".".join(name.split(".")[-2:]), ()):
        tensor = tensor.index_select(axis, order.to(tensor.device))
    return tensor
