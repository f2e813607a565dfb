"""Turns raw files into documents, sentences, words and tokens. Nothing here knows tensors or models."""

from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.text.tokenizers.tokens import FlatIds, SpecialTokens, Tokens

__all__ = ["FlatIds", "SpecialTokens", "Tokenizer", "Tokens", "load_tokenizer"]
