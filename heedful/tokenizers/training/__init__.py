"""Training of tokenizers: words are counted, and each kind learns its pieces from them."""
