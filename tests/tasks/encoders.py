"""Small encoders in folders as others write them: weights drawn, and a vocabulary of a few words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

import heedful

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS += ["the", "a", "cat", "cats", "sat", "on", "mat", "##s", "where", "is", ".", "?"]


def folder(path: Path, output: str, family: str = "bert", **numbers: Any) -> Path:
    """An encoder with one output, saved in Hugging Face's layout with a vocab.txt."""
    torch.manual_seed(1)
    small = {"vocab": len(WORDS), "width": 16, "heads": 2, "depth": 2, "length": 24} | numbers
    heedful.save(heedful.build(family, output=output, **small), path, layout="hf")
    (path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return path


def modules(path: Path, *kinds: str, pooling: dict[str, Any] | None = None, longest: int | None = None) -> Path:
    """What sentence-transformers writes beside a model."""
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    listed = [{"type": f"sentence_transformers.models.{kind}", "path": paths.get(kind, "")} for kind in kinds]
    (path / "modules.json").write_text(json.dumps(listed))
    (path / "1_Pooling").mkdir(exist_ok=True)
    (path / "1_Pooling" / "config.json").write_text(json.dumps(pooling or {"pooling_mode_mean_tokens": True}))
    if longest:
        (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest}))
    return path
