"""One GPT-2 as others hold it: heedful's weights in transformers' places."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from heedful.models.gpt import GPT

PARTS = {
    "ln_1": "norm1",
    "attn.c_attn": "attention.project.to_qkv",
    "attn.c_proj": "attention.join",
    "ln_2": "norm2",
    "mlp.c_fc": "feedforward.up",
    "mlp.c_proj": "feedforward.down",
}


def in_transformers(model: GPT) -> nn.Module:
    """The same model as Hugging Face's GPT2LMHeadModel, whose matrices lie the other way round."""
    transformers: Any = import_module("transformers")
    transformers.logging.set_verbosity_error()
    s = model.spec
    config = transformers.GPT2Config(
        vocab_size=s.vocab,
        n_embd=s.width,
        n_head=s.heads,
        n_layer=s.depth,
        n_positions=s.length,
        n_inner=s.hidden,
        bos_token_id=s.begin,
        eos_token_id=s.end,
        pad_token_id=0,
    )
    other: Any = transformers.GPT2LMHeadModel(config).to(next(model.parameters()))
    missing = other.load_state_dict(dict(weights(model)), strict=False).missing_keys
    assert missing == ["lm_head.weight"], missing  # it is tied
    return other.eval()


def weights(model: GPT) -> Iterator[tuple[str, Tensor]]:
    """The weights by GPT-2's names (Radford et al., 2019)."""
    own = {name: tensor.detach() for name, tensor in model.named_parameters()}
    yield "transformer.wte.weight", own["inputs.table.weight"]
    yield "transformer.wpe.weight", own["inputs.position.table"]
    for kind in ("weight", "bias"):
        yield f"transformer.ln_f.{kind}", own[f"decoder.norm.{kind}"]
        for layer in range(model.spec.depth):
            for there, here in PARTS.items():
                tensor = own[f"decoder.blocks.{layer}.{here}.{kind}"]
                yield f"transformer.h.{layer}.{there}.{kind}", tensor.T if tensor.dim() == 2 else tensor
