"""Tokenizers as others make them, on the engine and nothing else."""

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from heedful.tokenizers import Tokenizer
from tests.tokenizers.corpus import TEXTS


def gpt2() -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer(models.BPE())
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return learnt(
        engine, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"])
    )


def gpt() -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.BertPreTokenizer(), decoders.BPEDecoder(suffix="</w>")
    return learnt(engine, trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>"))


def marked() -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="@@"))
    engine.pre_tokenizer = pre_tokenizers.Whitespace()
    return learnt(engine, trainers.BpeTrainer(vocab_size=400, special_tokens=["[UNK]"], continuing_subword_prefix="@@"))


def llama3() -> tokenizers.Tokenizer:
    engine = gpt2()
    engine.model.ignore_merges = True
    engine.post_processor = processors.TemplateProcessing("<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])
    return engine


def bert() -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    engine.normalizer, engine.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    learnt(engine, trainers.WordPieceTrainer(vocab_size=500, special_tokens=special))
    engine.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    engine.enable_truncation(7)
    engine.enable_padding(length=20)
    return engine


def t5() -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer(models.Unigram())
    engine.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    learnt(engine, trainers.UnigramTrainer(vocab_size=400, special_tokens=["<unk>", "</s>"], unk_token="<unk>"))
    engine.add_tokens([AddedToken("@-@", normalized=False)])
    engine.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return engine


def level() -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return learnt(engine, trainers.WordLevelTrainer(vocab_size=300, special_tokens=["[UNK]"]))


def learnt(engine: tokenizers.Tokenizer, trainer: trainers.Trainer) -> tokenizers.Tokenizer:
    trainer.show_progress = False
    engine.train_from_iterator(TEXTS, trainer)
    return engine


ENGINES = {make.__name__: make() for make in (gpt2, gpt, marked, llama3, bert, t5, level)}
FOREIGN = {name: Tokenizer(engine) for name, engine in ENGINES.items()}
