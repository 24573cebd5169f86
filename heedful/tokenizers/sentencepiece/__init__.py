"""SentencePiece models: their protocol buffer, their maps of characters, and their way to the Rust engine."""
