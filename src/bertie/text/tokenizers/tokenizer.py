"""Tokenizer: what the rest of bertie knows of tokenizers, and `load_tokenizer`, which opens one."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from bertie.errors import TokenizerError
from bertie.text.confusable_words import ConfusableWords
from bertie.text.tokenizers.settings import read_settings
from bertie.text.tokenizers.tokenizer_files import FILES, from_json, from_merges, from_vocabulary
from bertie.text.tokenizers.tokens import FlatIds, SpecialTokens, Tokens
from bertie.text.tokenizers.unigram import SentencePieceTokenizer


class Tokenizer(Protocol):
    """Text to ids and back."""

    @property
    def kind(self) -> str:
        """ "wordpiece", "byte-bpe", "bpe", "unigram", "characters" or "words"."""

    @property
    def size(self) -> int:
        """Number of ids: the highest id + 1, added tokens included."""

    @property
    def special(self) -> SpecialTokens: ...

    @property
    def confusable(self) -> ConfusableWords:
        """The words that it corrects; most have none."""

    @property
    def digest(self) -> str:
        """sha256 over what decides the ids; the same after saving and loading."""

    @property
    def max_length(self) -> int | None:
        """The limit that the folder states, or None. It is never applied here."""

    def encode(self, text: str, pair: str | None = None, max_length: int | None = None) -> Tokens:
        """Tokens of a text or pair with special tokens, truncated "longest first" to max_length."""

    def encode_words(
        self, words: Sequence[str], pair: Sequence[str] | None = None, max_length: int | None = None
    ) -> Tokens:
        """Tokens of text that is already split; `words` of the result index the given list."""

    def encode_ids(self, texts: Sequence[str], max_length: int | None = None) -> FlatIds:
        """Ids of many texts with their special tokens, for bulk work."""

    def encode_pieces(self, texts: Sequence[str]) -> FlatIds:
        """Ids of many texts without special tokens, never truncated: what a corpus is made of."""

    @property
    def continues(self) -> np.ndarray:
        """[size] bool: this piece continues the word of the piece before it in the same text.

        Pieces without a mark of their own (byte-level BPE, Unigram) continue unless they start with a space; single
        characters continue if the one before them is of this kind too. The first piece of a text always starts a word.
        """

    def decode(self, ids: Sequence[int] | np.ndarray, skip_special: bool = True) -> str: ...

    def id_of(self, token: str) -> int | None: ...

    def token_of(self, id: int) -> str: ...

    def save(self, folder: Path) -> None:
        """Writes the files that AutoTokenizer of `transformers` and `load_tokenizer` open."""


def load_tokenizer(folder_or_file: str | Path) -> Tokenizer | None:
    """Opens the tokenizer of a model folder, or one of its files. None where a folder has no tokenizer file."""
    path = Path(folder_or_file)
    if path.is_dir():
        # What is there but no file is an error, not a missing tokenizer.
        found = next((path / name for name in FILES if os.path.lexists(path / name)), None)
        if found is None:
            return None
        path = found
    elif not path.is_file():
        raise TokenizerError("no such file or folder", where=str(path), hint="give a model folder or a tokenizer file")
    settings = read_settings(path.parent)
    if path.name in ("vocab.json", "merges.txt"):
        return from_merges(path.parent / "vocab.json", path.parent / "merges.txt", settings)
    if path.suffix == ".json":
        return from_json(path, settings)
    if path.suffix == ".txt":
        return from_vocabulary(path, settings)
    if path.suffix == ".model":
        return SentencePieceTokenizer.open(path, settings)
    raise TokenizerError("not a tokenizer file", where=str(path), hint=f"give one of {', '.join(FILES)}")
