"""Writing: encoder-decoders that were taught elsewhere write what they write: a translation, a summary, an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from heedful.data.collate import Ids
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.text.encoder_decoder import WriterSpec
from heedful.pipelines.seq2seq_pipeline import Seq2Seq
from heedful.pipelines.use import Usage
from heedful.pipelines.written_text import WrittenText
from heedful.tokenizers import hf_folders


@dataclass(frozen=True)
class TaughtElsewhere(WrittenText):
    """The tokenizer of a model's folder, and the special tokens of its spec."""

    def ids(self, texts: Sequence[str]) -> Sequence[Ids]:
        return [row[:-1] if row[-1:] == [self.special.end] else row for row in map(self.tokenizer.encode, texts)]

    def suited(self, spec: Spec) -> Self:
        if not isinstance(spec, WriterSpec):
            raise Refusal(f"writing is for models that read a text and write one, not for {spec.family!r}")
        known = getattr(spec, "source_vocab", None) or spec.vocab
        if len(self.tokenizer) > known:
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model {known}; copy both again")
        return replace(self, special=spec.special, longest=spec.longest)

    def state(self) -> dict[str, Any]:
        return {}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return cls(hf_folders.read_needed(folder), search=Decoding.model_validate(state.get("decoding", {})))


WRITING = Usage(name="seq2seq", pipeline=Seq2Seq("a text"), learned=TaughtElsewhere)
