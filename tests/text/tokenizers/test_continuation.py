"""`continues` and `encode_pieces` of every kind of tokenizer."""

from collections.abc import Callable

import numpy as np
import pytest

from bertie.errors import InputError, TokenizerError
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.unigram import SentencePieceTokenizer
from bertie.text.tokenizers.vocabulary import (
    byte_bpe_tokenizer,
    characters_tokenizer,
    wordpiece_tokenizer,
    words_tokenizer,
)

Draw = Callable[[int, int], list[str]]


@pytest.fixture(scope="module", params=["wordpiece", "slow wordpiece", "byte-bpe", "unigram", "characters", "words"])
def tokenizer(
    request: pytest.FixtureRequest, pieces: list[str], byte_bpe: tuple[dict[str, int], list[str]], spiece: bytes
) -> Tokenizer:
    if request.param == "unigram":
        return SentencePieceTokenizer(spiece)
    if request.param == "byte-bpe":
        merges = [(first, second) for first, _, second in (line.partition(" ") for line in byte_bpe[1][1:])]
        return byte_bpe_tokenizer(byte_bpe[0], merges)
    if request.param == "characters":
        return characters_tokenizer([piece for piece in pieces if len(piece) == 1 or piece[0] == "["])
    if request.param == "words":
        return words_tokenizer(pieces)
    built = wordpiece_tokenizer(pieces)
    if request.param == "slow wordpiece":
        built.__dict__["fast_ids"] = None
    return built


def test_pieces_are_the_ids_without_what_stands_around_a_text(tokenizer: Tokenizer, random_texts: Draw) -> None:
    texts = ["", "the cat", "[MASK] 使用 <mask>", *random_texts(11, 300)]
    found = tokenizer.encode_pieces(texts)
    assert len(found) == len(texts)
    assert not found.num_truncated.any()
    for text, row in zip(texts, found, strict=True):
        tokens = tokenizer.encode(text)
        assert row.tolist() == tokens.ids[~tokens.special].tolist()


def test_pieces_refuse_what_is_no_text(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode_pieces([])) == 0
    with pytest.raises(TokenizerError, match="encode_pieces was given one string"):
        tokenizer.encode_pieces("abc")
    with pytest.raises(InputError, match="text 1 holds the lone surrogate"):
        tokenizer.encode_pieces(["a", "\ud800"])


def test_special_tokens_continue_nothing(tokenizer: Tokenizer) -> None:
    assert tokenizer.continues.shape == (tokenizer.size,)
    assert tokenizer.continues.dtype == np.bool_
    assert not tokenizer.continues[tokenizer.special.ids()].any()


def test_pieces_of_one_word_are_one_word(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_pieces(["the catmat sportfrance running"]).ids
    begins = ~tokenizer.continues[ids]
    begins[0] = True  # the first piece of a text begins a word, also without a space before it
    if tokenizer.kind == "characters":
        assert ids[begins][1:].tolist() == [tokenizer.special.unk] * 3  # the spaces, which this vocabulary lacks
    elif tokenizer.kind == "words":
        assert begins.all()
    else:
        assert begins.sum() == 4
        assert len(ids) > 4


def test_ideographs_of_wordpiece_begin_words(pieces: list[str]) -> None:
    tokenizer = wordpiece_tokenizer(pieces)
    assert not tokenizer.continues[tokenizer.encode_pieces(["语言x预测"]).ids].any()
    # The mark alone is an ordinary piece.
    assert not wordpiece_tokenizer([*pieces, "##"]).continues[len(pieces)]
