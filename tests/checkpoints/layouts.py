"""Every public layout with configs as its makers write them, for the laws over all tables of names."""

from __future__ import annotations

from typing import Any

IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
# By model_type: configs, each of which the layout must read, and write again as it was.
CONFIGS: dict[str, list[dict[str, Any]]] = {
    "gpt2": [
        {"n_embd": 12, "n_layer": 2, "n_head": 3, "vocab_size": 20, "n_positions": 8, "n_inner": None, **IDS},
        {
            **{"n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 20, "n_positions": 8, "n_inner": 5, **IDS},
            **{"activation_function": "relu", "scale_attn_weights": False, "tie_word_embeddings": False},
            **{"layer_norm_epsilon": 1e-3, "attn_pdrop": 0.0, "resid_pdrop": 0.3, "eos_token_id": [2, 3]},
        },
    ],
}
