"""DINOv2 as Hugging Face writes it (`dinov2`): a vision transformer whose blocks scale what they add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from heedful.formats.foreign_config import Config
from heedful.formats.hf.vit import BLOCK, Vit, square, vit_fields
from heedful.formats.name_rules import Rule, Same
from heedful.models.part_words import parse
from heedful.models.vision.vit import ViTSpec

PLAIN = {"up": "mlp.fc1", "down": "mlp.fc2"}
GATED = {"up": "mlp.weights_in", "down": "mlp.weights_out"}
HARMLESS = ("apply_layernorm", "drop_path_rate", "out_features", "out_indices", "reshape_hidden_states", "stage_names")
RATIOS = range(1, 65)  # of the feed-forward to the width, among which the one of a gated one is found


class Dinov2(Vit):
    """The layout of DINOv2 (Oquab et al., 2024); its classes are told of the class token and the mean of patches."""

    kind, prefix = "dinov2", "dinov2."
    ignored = (r"dinov2\.embeddings\.mask_token",)

    def spec(self, config: Config, there: Mapping[str, Tensor]) -> dict[str, Any]:
        config.harmless(*HARMLESS, "use_mask_token")
        width, ratio = config.whole("hidden_size", 768), config.whole("mlp_ratio", 4)
        gate = config.flag("use_swiglu_ffn", False)
        said = {
            "width": width,
            "depth": config.whole("num_hidden_layers", 12),
            "heads": config.whole("num_attention_heads", 12),
            "hidden": gated_units(width, ratio) if gate else width * ratio,
            "leading": 1,
            "order": f"scaled(first={config.number('layerscale_value', 1.0)!r})",
            **square(config, vit_fields(config, there, patch=14, eps=1e-6)),
        }
        return said | {"pool": "both" if said["classes"] else "first"} | ({"feedforward": "gated"} if gate else {})

    def config(self, spec: ViTSpec) -> dict[str, Any]:
        said = super().config(spec)
        hidden, gate = said.pop("intermediate_size"), parse(spec.feedforward)[0] == "gated"
        fitting = [ratio for ratio in RATIOS if gated_units(spec.width, ratio) == hidden] if gate else []
        return said | {
            "hidden_act": "gelu" if gate else said["hidden_act"],
            "layerscale_value": float(parse(spec.order)[1].get("first", 1e-5)),
            "mlp_ratio": fitting[0] if fitting else max(1, hidden // spec.width),
            "use_swiglu_ffn": gate,
        }

    def architecture(self, spec: ViTSpec) -> str:
        return "Dinov2ForImageClassification" if spec.classes else "Dinov2Model"

    def blocks(self, spec: ViTSpec, theirs: str) -> list[Rule]:
        inner = GATED if parse(spec.feedforward)[0] == "gated" else PLAIN
        named = {"attention.join": "attention.output.dense", "norm1": "norm1", "norm2": "norm2"}
        named |= {f"feedforward.{ours}": part for ours, part in inner.items()}
        rules: list[Rule] = [
            Same(f"{BLOCK}.{ours}.{{kind}}", f"{theirs}.{part}.{{kind}}") for ours, part in named.items()
        ]
        return rules + [Same(f"{BLOCK}.scale{at}", f"{theirs}.layer_scale{at}.lambda1") for at in (1, 2)]


def gated_units(width: int, ratio: int) -> int:
    """How many hidden units a gated feed-forward has: two thirds of a plain one's, filled up to eights."""
    return (int(width * ratio * 2 / 3) + 7) // 8 * 8
