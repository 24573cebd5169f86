"""Formats of checkpoints: models as folders, in the native layout and in those of others, and their files' names."""

CARD = "README.md"  # for people, who may edit it: no sum is kept of it
SPEC, WEIGHTS, TOKENIZER = "spec.json", "model.safetensors", "tokenizer.json"
CONFIG, INDEX = "config.json", "model.safetensors.index.json"  # as Hugging Face has them, and those below
SETTINGS, GENERATION = "tokenizer_config.json", "generation_config.json"
PROCESSOR, NESTED_PROCESSOR = "preprocessor_config.json", "processor_config.json"
GRAPHS = ("model.onnx", "encoder_model.onnx", "decoder_model.onnx")
SAMPLE = "sample.py"  # asks the graphs beside it
