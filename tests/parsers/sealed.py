"""What is read under a manifest or of several files: manifests, checkpoints, Marian's tokenizers, treebanks."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from heedful.data.formats import sst
from heedful.formats import native
from heedful.safe import sealed_folders
from heedful.tokenizers import hf_folders
from heedful.training import run
from heedful.training.loop import Loop
from tests.formats.malice.good import make
from tests.parsers.doors import Good, written
from tests.parsers.mutations import of_bytes, of_json, of_lines

TEXTS = ["a b ab ba", "ab ab a b", "ba ba ab", "c a b c"]


def manifests(place: Path) -> list[Good]:
    """The manifest of a model."""
    make(place / "model", "pairs")
    sealed_folders.seal(place / "model")
    return [Good(place / "model" / sealed_folders.MANIFEST, of_json, lambda: native.load(place / "model"))]


def checkpoints(place: Path) -> list[Good]:
    """What a checkpoint says of itself, under a manifest that says that it is whole, and that manifest."""
    make(place / "run", "begun")
    saved = sorted((place / "run" / "checkpoints").glob("step-*"))[-1]

    def gone_on(sealed: bool) -> None:
        if sealed:
            sealed_folders.seal(saved, step=(sealed_folders.manifest(saved) or {}).get("step"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Loop, "__init__", lambda loop: None)
            loop: Any = Loop()  # type: ignore[call-arg]
            loop.folder, loop.restore = place / "run", lambda folder: run.checkpoint.read_checkpoint(folder)
            loop.saver = type("Saver", (), {"folder": saved.parent, "made": {}})
            loop.ranks, loop.progress = run.ONE, run.checkpoint.Progress()
            run.go_on(loop)

    whole = (saved / sealed_folders.MANIFEST).read_bytes()

    def progressed() -> None:
        try:
            gone_on(True)
        finally:
            (saved / sealed_folders.MANIFEST).write_bytes(whole)

    progress = saved / "progress.json"
    return [Good(progress, of_json, progressed), Good(saved / sealed_folders.MANIFEST, of_json, lambda: gone_on(False))]


def sides(place: Path) -> list[Good]:
    """Marian's tokenizer: two SentencePiece models and one vocabulary."""
    made = io.BytesIO()
    how: dict[str, Any] = {"hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2, "vocab_size": 12}
    trainer = sentencepiece.SentencePieceTrainer.train
    trainer(sentence_iterator=iter(TEXTS), model_writer=made, model_type="unigram", **how)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    tokens = ["</s>", "<unk>", *map(pieces.id_to_piece, range(3, len(pieces))), "<pad>"]
    vocab = json.dumps({token: at for at, token in enumerate(tokens)})

    def encoded(path: Path) -> None:
        hf_folders.read_folder(path.parent).encode("a b ab")

    every = (("source.spm", made.getvalue(), of_bytes), ("target.spm", made.getvalue(), of_bytes))
    named = [*every, ("vocab.json", vocab.encode(), of_json)]
    return [written(place / name, content, damage, encoded) for name, content, damage in named]


def treebanks(place: Path) -> list[Good]:
    """The Stanford Sentiment Treebank's two kinds of files."""
    read: dict[str, Callable[[Path], Any]] = {"lines": sst.of_lines, "tsv": sst.of_tsv}
    return [
        written(place / name, text, of_lines, lambda path, name=name: list(read[name](path)))  # type: ignore[misc]
        for name, text in (("lines", "1 a fine film\n0 a bad one\n"), ("tsv", "sentence\tlabel\na film\t1\nbad\t0\n"))
    ]


DOORS = {one.__name__: one for one in (manifests, checkpoints, sides, treebanks)}
