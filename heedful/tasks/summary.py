"""Summaries: a text is read and a shorter one written that says what matters (the lectures' abstractive kind)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from heedful.data.data_spec import DataSpec
from heedful.data.formats.parallel_text import Pair
from heedful.data.splits import Splits
from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.looking.page import Figures, Samples
from heedful.models import Spec
from heedful.models.text.encoder_decoder import WriterSpec
from heedful.models.text.transformer import SPECIAL
from heedful.tasks import rouge
from heedful.tasks.pairs import Encoded, Pairs
from heedful.tasks.task import Finding, Ids, nonempty
from heedful.tasks.tokenizing import tokenizer
from heedful.tokenizers import Tokenizer, hf_folders


class Summary(Pairs):
    """Reads a text and writes its summary, from chance or from any encoder-decoder; scored by ROUGE."""

    name: ClassVar[str] = "summary"
    also: ClassVar[tuple[str, ...]] = ("t5", "bart", "marian")
    watch: ClassVar[str] = "rouge_l"
    input: ClassVar[str] = "a text"
    inherits: ClassVar[bool] = True
    told: ClassVar[int] = 1

    @classmethod
    def tokenized(cls, data: DataSpec, pairs: Sequence[Pair]) -> Tokenizer:
        return tokenizer(data, (text for pair in pairs for text in (pair.source, pair.target)))

    def ids(self, texts: Sequence[str]) -> Sequence[Ids]:
        """The ids of texts, without the end that some tokenizers put there: it is put there anyway."""
        ends = {*self.tokenizer.special.values()}
        return [row[:-1] if row and row[-1] in ends else row for row in self.tokenizer.encode_all(texts)]

    def known(self, text: str) -> list[int]:
        return list(self.ids([nonempty(text, self.input)])[0])

    def numbers(self) -> dict[str, int]:
        return {}

    def defaults(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer)}

    def suits(self, spec: Spec) -> None:
        self.longest = spec.longest
        self.special = spec.special if isinstance(spec, WriterSpec) else SPECIAL
        self.filled = self.special.pad == 0  # zeros are padding then
        known: int = getattr(spec, "source_vocab", None) or getattr(spec, "vocab", None) or 0
        if len(self.tokenizer) > known:
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model {known}; use the model's own")

    def shortened(self, sample: Encoded, longest: int) -> Encoded:
        return Encoded(sample.source[: longest - 1], sample.target[: longest - 1], sample.texts, sample.place)

    def score(self, model: nn.Module, samples: Sequence[Encoded]) -> dict[str, float]:
        return rouge.mean(list(zip(self.written(model, samples), (one.texts.target for one in samples), strict=True)))

    def written(self, model: nn.Module, samples: Sequence[Encoded]) -> list[str]:
        """The summary of each sample."""
        return self.tokenizer.decode_all(self.answers(model, [sample.source for sample in samples]))

    def show(self, model: nn.Module, samples: Sequence[Encoded]) -> Samples:
        rows = tuple(
            (one.texts.source, one.texts.target, said)
            for one, said in zip(samples, self.written(model, samples), strict=True)
        )
        return Samples("Texts it never saw", ("text", "summary", "written"), rows)

    def finding(self, model: nn.Module, samples: Sequence[Encoded]) -> Finding | None:
        own, first = self.score(model, samples), rouge.mean([(lead(one), one.texts.target) for one in samples])
        note = "of the model, and {:.1f} % of the first words of the text, as many as the summary has"
        cards = tuple(
            (name.replace("_", "-").upper(), f"{100 * own[name]:.1f} %", note.format(100 * first[name]))
            for name in rouge.NAMES
        )
        layer = [path for path, _ in model.named_modules() if path.endswith("cross")][-1]
        return Finding(Figures("Beside the first words", cards), layer, "mean")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        task = cls(hf_folders.needed(folder))
        task.decoding = Decoding.model_validate(state.get("decoding", {}))
        return task

    def reopen(self, data: DataSpec, seed: int) -> Splits[Encoded]:
        splits = super().reopen(data, seed)
        parts = (splits.train, splits.valid, splits.test)
        return Splits(*([self.shortened(one, self.longest) for one in part] for part in parts))


def lead(sample: Encoded) -> str:
    """The first words of a text, as many as its summary has: what is hard to beat where news are summarised."""
    return " ".join(sample.texts.source.split()[: len(sample.texts.target.split())])
