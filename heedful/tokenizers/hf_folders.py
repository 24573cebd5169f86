"""Tokenizers of model folders as others keep them: one file, or several that belong together. All of it is data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from heedful.errors import Refusal
from heedful.safe import opening
from heedful.tokenizers import read_tokenizer
from heedful.tokenizers.from_sentencepiece import convert
from heedful.tokenizers.hf_settings import Files
from heedful.tokenizers.marian import SOURCE, Sides
from heedful.tokenizers.sentencepiece.proto import parse
from heedful.tokenizers.tokenizer import Tokenizer

JSON, CONFIG = "tokenizer.json", "config.json"
VOCAB, MERGES, LINES = "vocab.json", "merges.txt", "vocab.txt"
PIECES = ("tokenizer.model", "spiece.model")
NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
QWEN = (  # how Qwen2 cuts a text into words
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def is_there(folder: Path) -> bool:
    """Whether a folder holds a tokenizer."""
    return any(os.path.lexists(folder / name) for name in (JSON, SOURCE, VOCAB, LINES, *PIECES))


def read_needed(folder: Path) -> Tokenizer:
    """The tokenizer of a folder whose model is to read a text."""
    if not is_there(folder):
        raise Refusal(f"{folder} has no tokenizer, without which no text can be read; copy it there")
    return read_folder(folder)


def read_folder(folder: Path) -> Tokenizer:
    """The tokenizer of a folder: of its `tokenizer.json`, or of the files that this kind of model has otherwise."""
    if os.path.lexists(folder / JSON):
        return Tokenizer.read(opening.inside(folder / JSON))
    if os.path.lexists(folder / SOURCE):
        return Sides.read(folder)
    files = Files(folder)
    kind = str(files.json(CONFIG).get("model_type"))
    if kind not in KINDS:
        raise Refusal(
            f"{folder} has no {JSON}, from which alone a tokenizer of model_type {kind[:60]!r} is read; "
            "write one with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
    return read_tokenizer.make_tokenizer(folder, lambda: (KINDS[kind](files), None), Tokenizer)


def add_tokens(engine: tokenizers.Tokenizer, files: Files, **defaults: str) -> tokenizers.Tokenizer:
    """An engine that knows the special tokens of the settings; those that are not text stand behind the vocabulary."""
    for at, entry in sorted(added_tokens(files).items()):
        token = AddedToken(
            entry["content"], **{key: entry[key] is True for key in ("lstrip", "rstrip", "normalized") if key in entry}
        )
        (engine.add_special_tokens if entry.get("special", True) else engine.add_tokens)([token])
        if engine.token_to_id(entry["content"]) != at:
            raise ValueError(f"the added token {entry['content'][:60]!r} cannot have the id {at}")
    found = [files.special(name, defaults.get(name)) for name in NAMES]
    more = files.setting("additional_special_tokens", [])
    found += [one.get("content") if isinstance(one, dict) else one for one in (more if isinstance(more, list) else [])]
    known = [text for text in found if isinstance(text, str) and engine.token_to_id(text) is not None]
    mask = defaults.get("mask_token")  # takes the blank before it
    engine.add_special_tokens([AddedToken(text, lstrip=text == mask, normalized=False) for text in known])
    return engine


def added_tokens(files: Files) -> dict[int, dict[str, Any]]:
    """The tokens that settings add, by id."""
    found: dict[int, dict[str, Any]] = {}
    for content, at in files.json("added_tokens.json").items():
        if type(at) is int:
            found[at] = {"content": content}
    decoder = files.setting("added_tokens_decoder", {})
    for at, entry in decoder.items() if isinstance(decoder, dict) else ():
        if at.isdecimal() and len(at) < 10 and isinstance(entry, dict) and isinstance(entry.get("content"), str):
            found[int(at)] = entry
    return found


def around(engine: tokenizers.Tokenizer, before: Iterable[str | None], after: Iterable[str | None]) -> None:
    """Has the engine put tokens before and after each text."""
    names = [[name for name in side if name is not None] for side in (before, after)]
    if not any(names):
        return
    single = " ".join([*names[0], "$A", *names[1]])
    pair = " ".join([*names[0], "$A", *names[1], *names[0], "$B:1", *names[1]])
    ids = {name: engine.token_to_id(name) for name in {*names[0], *names[1]}}
    missing = [name for name, at in ids.items() if at is None]
    if missing:
        raise ValueError(f"the special token {missing[0][:60]!r} is not in the vocabulary")
    given = json.loads(engine.post_processor.__getstate__())["special_tokens"] if engine.post_processor else {}
    given |= {name: {"id": name, "ids": [at], "tokens": [name]} for name, at in ids.items()}
    engine.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=[*given.values()])


def one_of(engine: tokenizers.Tokenizer, files: Files, key: str, default: str) -> tuple[str, int]:
    """A special token and its id, by its name in the settings."""
    text = files.special(key, default) or default
    at = engine.token_to_id(text)
    if at is None:
        raise ValueError(f"the special token {text[:60]!r} is not in the vocabulary")
    return text, at


def byte_pairs(files: Files) -> models.BPE:
    """vocab.json and merges.txt: pieces of bytes (Sennrich et al., 2016)."""
    vocab = files.json(files.first(VOCAB))
    if not all(type(at) is int and 0 <= at < read_tokenizer.MOST for at in vocab.values()):
        raise ValueError(f"an id in {VOCAB} is none")
    lines = files.bytes(files.first(MERGES)).decode("utf-8-sig").split("\n")
    pairs = [tuple(line.rstrip("\r").split(" ")) for line in lines if line.strip() and not line.startswith("#version")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"a line of {MERGES} is no pair")
    return models.BPE(vocab, pairs, continuing_subword_prefix="", end_of_word_suffix="")  # type: ignore[arg-type]


def gpt2(files: Files) -> tokenizers.Tokenizer:
    """Byte-level BPE as GPT-2 has it (Radford et al., 2019)."""
    engine = tokenizers.Tokenizer(byte_pairs(files))
    blank = files.setting("add_prefix_space", False) is True
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.ByteLevel(add_prefix_space=blank), decoders.ByteLevel()
    end = "<|endoftext|>"
    add_tokens(engine, files, bos_token=end, eos_token=end, unk_token=end)
    around(engine, [files.special("bos_token", end) if files.setting("add_bos_token") is True else None], [])
    return engine


def roberta(files: Files) -> tokenizers.Tokenizer:
    """The same between <s> and </s> (Liu et al., 2019)."""
    engine = tokenizers.Tokenizer(byte_pairs(files))
    blank = files.setting("add_prefix_space", False) is True
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.ByteLevel(add_prefix_space=blank), decoders.ByteLevel()
    named = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    }
    add_tokens(engine, files, **named, cls_token="<s>", sep_token="</s>")
    first, last = (one_of(engine, files, *pair) for pair in (("cls_token", "<s>"), ("sep_token", "</s>")))
    engine.post_processor = processors.RobertaProcessing(last, first, add_prefix_space=blank)
    return engine


def qwen2(files: Files) -> tokenizers.Tokenizer:
    """Byte-level BPE as Qwen2 has it (Yang et al., 2024)."""
    engine = tokenizers.Tokenizer(byte_pairs(files))
    engine.normalizer, engine.decoder = normalizers.NFC(), decoders.ByteLevel()
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    engine.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN), "isolated"), bytewise])
    return add_tokens(engine, files, eos_token="<|endoftext|>", pad_token="<|endoftext|>", unk_token="<|endoftext|>")


def bert(files: Files) -> tokenizers.Tokenizer:
    """vocab.txt: WordPiece between [CLS] and [SEP] (Devlin et al., 2019)."""
    lines = files.bytes(files.first(LINES)).decode("utf-8-sig").rstrip("\n").split("\n")
    vocab = {line.rstrip("\r"): at for at, line in enumerate(lines)}
    engine = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token=files.special("unk_token", "[UNK]") or "[UNK]"))
    accents = files.setting("strip_accents")
    engine.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=files.setting("tokenize_chinese_chars", True) is True,
        strip_accents=accents if isinstance(accents, bool) else None,
        lowercase=files.setting("do_lower_case", True) is True,
    )
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    named = {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]"}
    add_tokens(engine, files, **named, mask_token="[MASK]")
    first, last = (one_of(engine, files, name, named[name]) for name in ("cls_token", "sep_token"))
    engine.post_processor = processors.BertProcessing(last, first)
    return engine


def llama(files: Files) -> tokenizers.Tokenizer:
    """SentencePiece's model, behind <s> unless the settings say otherwise."""
    engine = convert(parse(files.bytes(files.first(*PIECES))))
    first = files.special("bos_token", "<s>") if files.setting("add_bos_token", True) is True else None
    last = files.special("eos_token", "</s>") if files.setting("add_eos_token", False) is True else None
    around(engine, [first], [last])
    return engine


def t5(files: Files) -> tokenizers.Tokenizer:
    """SentencePiece's model with a hundred more tokens behind it, and </s> behind each text (Raffel et al., 2020)."""
    engine = convert(parse(files.bytes(files.first(*PIECES))))
    around(engine, [], [files.special("eos_token", "</s>")])
    extra = files.setting("extra_ids", 100)
    if type(extra) is not int or not 0 <= extra <= 10_000:
        raise ValueError("extra_ids is no number of tokens")
    engine.add_special_tokens([AddedToken(f"<extra_id_{at}>", normalized=False) for at in reversed(range(extra))])
    return engine


KINDS: dict[str, Callable[[Files], tokenizers.Tokenizer]] = {
    "gpt2": gpt2,
    "roberta": roberta,
    "bart": roberta,
    "qwen2": qwen2,
    "qwen3": qwen2,
    "bert": bert,
    "distilbert": bert,
    "llama": llama,
    "mistral": llama,
    "t5": t5,
}
