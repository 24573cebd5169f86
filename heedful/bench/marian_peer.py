"""One encoder-decoder as others hold it: heedful's weights in Marian's places, for transformers and for CTranslate2."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from heedful.formats.hf.transformer import as_public_family
from heedful.formats.layout_registry import LAYOUTS
from heedful.formats.name_rules import rules_of
from heedful.formats.weights import state
from heedful.inputs import SineHalves
from heedful.models import Transformer
from heedful.models.text.transformer import BEGIN, END, PAD

NEVER = -1e9  # the score of what is never written; each of the peers adds such scores as a bias of its own
BANNED = [PAD, BEGIN, END]
KINDS = ("weight", "bias")


def weights(model: Transformer) -> dict[str, Tensor]:
    """The weights of a post-norm model with sines for positions, by Marian's names (Junczys-Dowmunt et al., 2018)."""
    other, found = as_public_family(model), dict[str, Tensor]()
    own = state(other)
    for name, rule in rules_of(own, LAYOUTS["marian"].table(other.spec)).items():
        found |= dict(zip(rule.names, rule.write(own[name]), strict=True))
    table = found["model.shared.weight"]
    never = torch.zeros(1, len(table))
    never[:, BANNED] = NEVER
    found |= {"lm_head.weight": table, "final_logits_bias": never}
    places = torch.arange(model.spec.length)[None]
    sines = SineHalves(model.spec.width)(torch.zeros(1, model.spec.length, model.spec.width), places)[0]
    for side in ("encoder", "decoder"):
        found |= {f"model.{side}.embed_tokens.weight": table, f"model.{side}.embed_positions.weight": sines}
    return found


def in_transformers(model: Transformer) -> nn.Module:
    """The same model as Hugging Face's MarianMTModel."""
    transformers: Any = import_module("transformers")
    transformers.logging.set_verbosity_error()
    s = model.spec
    sizes = {"layers": s.depth, "attention_heads": s.heads, "ffn_dim": s.hidden}
    config = transformers.MarianConfig(
        **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()},
        vocab_size=s.vocab,
        d_model=s.width,
        max_position_embeddings=s.length,
        activation_function="relu",
        scale_embedding=True,
        dropout=s.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        decoder_start_token_id=BEGIN,
        eos_token_id=END,
        forced_eos_token_id=None,
    )
    other: nn.Module = transformers.MarianMTModel(config)
    other.load_state_dict(weights(model))
    return other


def names(model: Transformer) -> list[str]:
    """A word for each id: CTranslate2 reads and writes words."""
    return ["<pad>", "<s>", "</s>", *(f"t{index}" for index in range(3, model.spec.vocab))]


def in_ctranslate2(model: Transformer, threads: int) -> dict[str, Any]:
    """The same model as CTranslate2's translators, by the precision of their weights."""
    ctranslate2: Any = import_module("ctranslate2")
    with TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        place.mkdir()
        specification_of(model).save(str(place))
        return {
            kind: ctranslate2.Translator(str(place), compute_type=kind, inter_threads=1, intra_threads=threads)
            for kind in ("float32", "int8")
        }


def specification_of(model: Transformer) -> Any:
    """What CTranslate2 calls a specification: its own description of a model, filled from Marian's names."""
    specs: Any = import_module("ctranslate2.specs")
    found, depth = weights(model), model.spec.depth
    relu = specs.common_spec.Activation.RELU
    spec = specs.TransformerSpec.from_config((depth, depth), model.spec.heads, pre_norm=False, activation=relu)
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        table = stack.embeddings[0] if side == "encoder" else stack.embeddings
        table.weight = found["model.shared.weight"]
        stack.scale_embeddings = True
        stack.position_encodings.encodings = found[f"model.{side}.embed_positions.weight"]
        for index, layer in enumerate(stack.layer):
            fill(layer, f"model.{side}.layers.{index}", found)
    spec.decoder.projection.weight = found["lm_head.weight"]
    spec.decoder.projection.bias = found["final_logits_bias"][0]
    spec.register_source_vocabulary(names(model))
    spec.register_target_vocabulary(names(model))
    spec.config.unk_token, spec.config.eos_token = "t3", "</s>"
    spec.config.bos_token = spec.config.decoder_start_token = "<s>"
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize()
    return spec


def fill(layer: Any, at: str, found: dict[str, Tensor]) -> None:
    """One layer of CTranslate2's, from the weights under a name."""

    def put(place: Any, *names: str) -> None:
        place.weight, place.bias = (torch.cat([found[f"{at}.{name}.{kind}"] for name in names]) for kind in KINDS)

    def norm(place: Any, name: str) -> None:
        place.gamma, place.beta = found[f"{at}.{name}.weight"], found[f"{at}.{name}.bias"]

    attention = layer.self_attention
    put(attention.linear[0], "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    put(attention.linear[1], "self_attn.out_proj")
    norm(attention.layer_norm, "self_attn_layer_norm")
    if ".decoder." in at:
        attention = layer.attention
        put(attention.linear[0], "encoder_attn.q_proj")
        put(attention.linear[1], "encoder_attn.k_proj", "encoder_attn.v_proj")
        put(attention.linear[2], "encoder_attn.out_proj")
        norm(attention.layer_norm, "encoder_attn_layer_norm")
    put(layer.ffn.linear_0, "fc1")
    put(layer.ffn.linear_1, "fc2")
    norm(layer.ffn.layer_norm, "final_layer_norm")
