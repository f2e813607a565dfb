"""Raw files in, documents and tokens out. Nothing here knows of tensors or models."""

from bertie.text.tokenizer import Tokenizer, load_tokenizer
from bertie.text.tokens import FlatIds, SpecialTokens, Tokens

__all__ = ["FlatIds", "SpecialTokens", "Tokenizer", "Tokens", "load_tokenizer"]
