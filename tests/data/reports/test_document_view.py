"""A document for reading: its words and pieces, and what a masking does to them."""

from typing import Any

import numpy as np
import pytest

from bertie.data.reports.document_view import view_document
from bertie.data.shards import CorpusDocument
from bertie.errors import TokenizerError
from bertie.text.tokenizers.vocabulary import byte_bpe_tokenizer, words_tokenizer


def test_words_and_pieces(small: Any) -> None:
    sentences = view_document(small.corpus.document(0), small.tokenizer)
    words = [["·".join(map(str, word)) for word in sentence] for sentence in sentences]
    assert words == [["un·aff·able", "cat·s", "sat", "on", "the", "mat", "."], ["the", "cat", "sat", "."]]


@pytest.mark.parametrize("mask", ["whole-word", "span", "n-gram"])
def test_a_masking_takes_words_whole(small: Any, mask: Any) -> None:
    fates = set()
    for seed in range(40):
        for sentence in view_document(small.corpus.document(2), small.tokenizer, mask, seed):
            for word in sentence:
                assert len({piece.fate != "plain" for piece in word}) == 1
                fates |= {piece.fate for piece in word}
    assert fates == {"plain", "masked", "random", "kept"}


def test_a_seed_is_a_masking(small: Any) -> None:
    one, same, other = (view_document(small.corpus.document(2), small.tokenizer, "token", seed) for seed in (1, 1, 2))
    assert one == same != other
    assert sum(piece.fate != "plain" for sentence in one for word in sentence for piece in word) in (3, 4)


def test_without_a_mask_token_there_is_no_masking() -> None:
    tokenizer = words_tokenizer(["[UNK]", "a", "b"])
    document = CorpusDocument(np.array([1, 2]), np.array([0]), np.array([True, True]), "")
    with pytest.raises(TokenizerError, match="no mask token"):
        view_document(document, tokenizer, "token")


def test_bytes_are_shown_as_text() -> None:
    tokenizer = byte_bpe_tokenizer({"Ġ": 0, "a": 1, "Ġa": 2, "Ã": 3}, [("Ġ", "a")])
    document = CorpusDocument(np.array([2, 1, 3]), np.array([0]), np.array([True, False, False]), "")
    ((word,),) = view_document(document, tokenizer)
    assert [str(piece) for piece in word] == ["a", "a", "Ã"]
