"""Tokenizers: text to token ids and back, and the files that store them."""
