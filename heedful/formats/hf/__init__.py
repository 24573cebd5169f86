"""Layouts of Hugging Face's transformers: names of tensors and configs, one file a family."""
