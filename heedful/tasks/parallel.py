"""The tokenizer of texts, until whoever reads a corpus takes it from where it is."""

from heedful.tasks.tokenizing import tokenizer_of as tokenizer_of
