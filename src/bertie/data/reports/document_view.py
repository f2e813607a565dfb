"""Turns the ids of a document into sentences of words of pieces for reading, and shows what masking would do to
them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bertie.data.masking import Chooser, EachToken, NGrams, Replacement, Spans, WholeWords
from bertie.data.samples.sample_protocols import StoredDocument
from bertie.errors import TokenizerError
from bertie.text.tokenizers.tokenizer import Tokenizer

MaskKind = Literal["token", "whole-word", "span", "n-gram"]
MASKINGS: dict[MaskKind, tuple[Chooser, Replacement]] = {
    "token": (EachToken(), Replacement()),
    "whole-word": (WholeWords(), Replacement()),
    "span": (Spans(), Replacement(per="unit")),
    "n-gram": (NGrams(), Replacement()),
}
RATE = 0.15
Fate = Literal["plain", "masked", "random", "kept"]


@dataclass(frozen=True)
class Piece:
    text: str
    fate: Fate = "plain"
    becomes: str = ""  # what stands there instead, where it was changed

    def __str__(self) -> str:
        marks = {
            "plain": self.text,
            "masked": "[MASK]",
            "random": f"{self.text}→{self.becomes}",
            "kept": f"{self.text}=",
        }
        return marks[self.fate]


Word = list[Piece]


def view_document(
    document: StoredDocument, tokenizer: Tokenizer, mask: MaskKind | None = None, seed: int = 0
) -> list[list[Word]]:
    """Sentences of words of pieces."""
    pieces = [Piece(piece_text(tokenizer, id)) for id in document.ids.tolist()]
    if mask is not None:
        _preview(pieces, document, tokenizer, mask, seed)
    sentences: list[list[Word]] = []
    starts = set(document.sentences.tolist())
    for position, (piece, begins) in enumerate(zip(pieces, document.words.tolist(), strict=True)):
        if position in starts or not sentences:
            sentences.append([])
        if begins or not sentences[-1]:
            sentences[-1].append([])
        sentences[-1][-1].append(piece)
    return sentences


def _preview(pieces: Word, document: StoredDocument, tokenizer: Tokenizer, mask: MaskKind, seed: int) -> None:
    if tokenizer.special.mask is None:
        raise TokenizerError("the tokenizer has no mask token, so there is no masking to preview")
    chooser, replacement = MASKINGS[mask]
    rng = np.random.default_rng(seed)
    tokens = document.ids.astype(np.int64)
    words = np.cumsum(document.words, dtype=np.int64)
    eligible = ~np.isin(tokens, tokenizer.special.ids())
    chosen = chooser.choose(words, eligible, max(1.0, RATE * float(eligible.sum())), rng)
    replaced = replacement.replace_tokens(tokens, chosen, tokenizer.special.mask, tokenizer.size, rng)
    for position in chosen.positions.tolist():
        new, text = int(replaced[position]), pieces[position].text
        if new == tokenizer.special.mask:
            pieces[position] = Piece(text, "masked")
        elif new == tokens[position]:
            pieces[position] = Piece(text, "kept")
        else:
            pieces[position] = Piece(text, "random", piece_text(tokenizer, new))


def piece_text(tokenizer: Tokenizer, id: int) -> str:
    """Without the marks of its kind; a piece that is no whole character is shown as the tokenizer writes it."""
    token = tokenizer.token_of(id)
    if tokenizer.kind == "wordpiece":
        return token.removeprefix("##")
    text = tokenizer.decode([id], skip_special=False).strip()
    return text if text and "\ufffd" not in text else token
