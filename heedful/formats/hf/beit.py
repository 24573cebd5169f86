"""BEiT as Hugging Face writes it (`beit`)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor, nn

from heedful.formats.foreign_config import Config
from heedful.formats.hf.mae import Blank
from heedful.formats.hf.vit import BLOCK, PARTS, Kernel, Tokens, Vit, square, vit_fields
from heedful.formats.name_rules import Row, Rule, Same, Stacked
from heedful.formats.placing import place_weights
from heedful.formats.weights import state
from heedful.models.part_words import parse
from heedful.models.vision.beit import BEiT, BEiTSpec

HARMLESS = (
    *("add_fpn", "auxiliary_channels", "auxiliary_concat_input", "auxiliary_loss_weight", "auxiliary_num_convs"),
    *("drop_path_rate", "out_features", "out_indices", "pool_scales", "reshape_hidden_states"),
    *("semantic_loss_ignore_index", "stage_names", "use_auxiliary_head"),
)
WAYS = "relative_position_bias.relative_position_bias_table"
MASKED = "BeitForMaskedImageModeling"
TEACHERS = ("tokenizer_width", "mask_ratio")  # of a spec: what its teacher is, and how much was hidden of what both saw


def without_coder(model: BEiT) -> nn.Module:
    """A BEiT without the autoencoder that taught it, for which others have no place; says that it is left out."""
    if model.coder is None:
        return model
    warnings.warn(
        f"the autoencoder that taught the model (tokenizer_width={model.spec.tokenizer_width}) is left out: the "
        "layout 'beit' has no place "
        "for it; keep the native folder to score guesses",
        stacklevel=5,
    )
    spec = BEiTSpec(**{key: value for key, value in model.spec if key not in TEACHERS})
    return place_weights(spec, {name: one for name, one in state(model).items() if not name.startswith("coder.")})


class Beit(Vit):
    """The layout of BEiT (Bao et al., 2022)."""

    kind, family, prefix = "beit", "beit", "beit."
    ignored: ClassVar[Sequence[str]] = (r"beit\..*relative_position_index", r"beit\.embeddings\.mask_token")

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.harmless(*HARMLESS)
        config.flag("use_mask_token", False)  # the files know
        own, shared = (config.flag(f"use_{kind}relative_position_bias", False) for kind in ("", "shared_"))
        if own and shared:
            raise config.refusal("use_shared_relative_position_bias", "only one kind of bias is supported")
        scale = config.number("layer_scale_init_value", 0.1)
        vocab = config.whole("vocab_size", 8192)
        config.harmless("architectures")
        said = config.classes()
        masked = "lm_head.weight" in there or (not there and said == [MASKED])
        mean = config.flag("use_mean_pooling", True)
        if masked and not mean:
            raise config.refusal("use_mean_pooling", "only true is supported where patches are hidden")
        absolute = config.flag("use_absolute_position_embeddings", False)
        pictures = vit_fields(config, there, 16, 1e-12)
        pictures = square(config, pictures) if own or shared or absolute else pictures
        return {
            "width": config.whole("hidden_size", 768),
            "depth": config.whole("num_hidden_layers", 12),
            "heads": config.whole("num_attention_heads", 12),
            "hidden": config.whole("intermediate_size", 3072),
            "vocab": vocab if masked else None,
            "bias": "own" if own else "shared" if shared else "none",
            "position": "learned" if absolute else "none",
            "order": f"scaled(first={scale!r})" if scale > 0 else "pre",
            "pool": "mean" if mean else "first",
            **{key: value for key, value in pictures.items() if key != "project_bias"},
        }

    def config(self, spec: BEiTSpec) -> dict[str, Any]:
        order, given = parse(spec.order)
        return self.said(spec) | {
            "use_absolute_position_embeddings": spec.position == "learned",
            "use_relative_position_bias": spec.bias == "own",
            "use_shared_relative_position_bias": spec.bias == "shared",
            "use_mean_pooling": spec.pool == "mean",
            "use_mask_token": spec.vocab is not None,
            "layer_scale_init_value": float(given.get("first", 1e-5)) if order == "scaled" else 0.0,
            "vocab_size": spec.vocab or 8192,
        }

    def architecture(self, spec: Any) -> str:
        return MASKED if spec.vocab else "BeitForImageClassification" if spec.classes else "BeitModel"

    def table(self, spec: BEiTSpec) -> Sequence[Rule]:
        theirs, inner, ours = "beit.encoder.layer.{n}", "beit.embeddings", f"{BLOCK}.attention"
        attention = f"{theirs}.attention.attention"
        matrices = [f"{attention}.{part}.weight" for part in ("query", "key", "value")]
        patches, last = (
            f"{inner}.patch_embeddings.projection",
            "pooler.layernorm" if spec.pool == "mean" else "layernorm",
        )
        return [
            Tokens("inputs.leading", {f"{inner}.cls_token": 1}),
            Blank("blank", f"{inner}.mask_token"),
            Row("inputs.position.table", f"{inner}.position_embeddings"),
            Kernel("inputs.stem.matrix.weight", f"{patches}.weight", spec.channels, spec.patch),
            Same("inputs.stem.matrix.bias", f"{patches}.bias"),
            Stacked(f"{ours}.project.to_qkv.weight", dict.fromkeys(matrices, spec.width)),
            Same(f"{ours}.project.bias_q", f"{attention}.query.bias"),
            Same(f"{ours}.project.bias_v", f"{attention}.value.bias"),
            Same(f"{ours}.bias.table", f"{attention}.{WAYS}"),
            Same("table.table", f"beit.encoder.{WAYS}"),
            *(Same(f"{BLOCK}.{part}.{{kind}}", f"{theirs}.{name}.{{kind}}") for part, name in PARTS.items()),
            *(Same(f"{BLOCK}.scale{at}", f"{theirs}.lambda_{at}") for at in (1, 2)),
            Same("norm.{kind}", "layernorm.{kind}" if spec.vocab else f"beit.{last}.{{kind}}"),
            Same("tokens.{kind}", "lm_head.{kind}"),
            Same("outputs.{kind}", "classifier.{kind}"),
        ]
