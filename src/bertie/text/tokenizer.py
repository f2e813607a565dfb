"""A folder in, a Tokenizer out. `Tokenizer` is what the rest of the house knows of tokenizers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from bertie.errors import TokenizerError
from bertie.text import sources
from bertie.text.tokens import FlatIds, SpecialTokens, Tokens


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
    def digest(self) -> str:
        """sha256 over what decides the ids; the same after saving and loading."""

    @property
    def max_length(self) -> int | None:
        """The limit that the folder states; None without one. It is stated, never applied."""

    def encode(self, text: str, pair: str | None = None, max_length: int | None = None) -> Tokens:
        """One text or pair with its special tokens, cut "longest first" to max_length."""

    def encode_words(
        self, words: Sequence[str], pair: Sequence[str] | None = None, max_length: int | None = None
    ) -> Tokens:
        """Text that is split already; `words` of the result index the given list."""

    def encode_ids(self, texts: Sequence[str], max_length: int | None = None) -> FlatIds:
        """The ids of many texts with their special tokens: the way for bulk work."""

    def encode_pieces(self, texts: Sequence[str]) -> FlatIds:
        """The ids of many texts without special tokens around them, never cut: what a corpus is made of."""

    @property
    def continues(self) -> np.ndarray:
        """[size] bool: this piece continues the word of the piece before it in the same text.

        Pieces without a mark of their own (byte-level BPE, Unigram) continue unless they begin with a space; single
        characters continue where the one before them is of this kind too. The first piece of a text begins a word
        whatever this says.
        """

    def decode(self, ids: Sequence[int] | np.ndarray, skip_special: bool = True) -> str: ...

    def id_of(self, token: str) -> int | None: ...

    def token_of(self, id: int) -> str: ...

    def save(self, folder: Path) -> None:
        """Write the files that `transformers`' AutoTokenizer opens, and `load_tokenizer` too."""


def load_tokenizer(folder_or_file: str | Path) -> Tokenizer | None:
    """The tokenizer of a model folder, or of one of its files. None when a folder has no tokenizer file at all."""
    path = Path(folder_or_file)
    if path.is_file():
        return sources.from_file(path)
    if not path.is_dir():
        raise TokenizerError("no such file or folder", where=str(path), hint="give a model folder or a tokenizer file")
    for name in sources.FILES:
        if (path / name).is_file():
            return sources.from_file(path / name)
    return None
