"""Tokens of texts, pairs and words: offsets, word numbers, truncation and errors."""

from collections.abc import Callable

import numpy as np
import pytest
from tokenizers import AddedToken

from bertie.errors import InputError, TokenizerError
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.tokenizers.settings import Settings
from bertie.text.tokenizers.vocabulary import byte_bpe_tokenizer, wordpiece_tokenizer


@pytest.fixture(scope="module")
def tokenizer(pieces: list[str]) -> PipelineTokenizer:
    return wordpiece_tokenizer(pieces)


@pytest.fixture(scope="module")
def byte_level(byte_bpe: tuple[dict[str, int], list[str]]) -> PipelineTokenizer:
    vocabulary, merges = byte_bpe
    return byte_bpe_tokenizer(vocabulary, [tuple(line.split(" ")) for line in merges[1:]])  # type: ignore[misc]


def test_offsets_and_words_point_into_the_text(tokenizer: PipelineTokenizer) -> None:
    text = "Unaffable café, 今天!"
    tokens = tokenizer.encode(text)
    assert [text[start:end] for start, end in tokens.offsets[1:2]] == ["Unaffable"]
    surfaces: dict[int, str] = {}
    for word, (start, end) in zip(tokens.words, tokens.offsets, strict=True):
        surfaces[int(word)] = surfaces.get(int(word), "") + text[start:end]
    assert surfaces == {-1: "", 0: "Unaffable", 1: "café", 2: ",", 3: "今", 4: "天", 5: "!"}
    assert tokens.special.tolist() == [True, *[False] * (len(tokens) - 2), True]
    assert tokens.second_start is None


def test_a_pair_counts_its_words_on(tokenizer: PipelineTokenizer) -> None:
    tokens = tokenizer.encode("the cat", "sat on the mat")
    assert tokens.words.tolist() == [-1, 0, 1, -1, 2, 3, 4, 5, -1]
    assert tokens.segments.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert tokens.texts.tolist() == [-1, 0, 0, -1, 1, 1, 1, 1, -1]
    assert tokens.offsets[4].tolist() == [0, 3]


def test_an_empty_text_is_its_special_tokens(tokenizer: PipelineTokenizer) -> None:
    special = tokenizer.special
    assert tokenizer.encode("").ids.tolist() == [special.first, special.separator]
    assert tokenizer.encode("", "").texts.tolist() == [-1, -1, -1]
    flat = tokenizer.encode_ids(["", "the", ""])
    assert flat.lengths.tolist() == [2, 3, 2]
    assert len(tokenizer.encode_ids([])) == 0


def test_a_special_token_within_the_text_keeps_its_place(tokenizer: PipelineTokenizer) -> None:
    tokens = tokenizer.encode("the [MASK] cat")
    assert tokens.ids[2] == tokenizer.special.mask
    assert tokens.offsets[2].tolist() == [4, 10]
    assert tokens.words[2] == 1
    assert not tokens.special[2]


@pytest.mark.parametrize("max_length", [2, 3, 5, 50])
def test_bulk_ids_are_those_of_encode(
    max_length: int, tokenizer: PipelineTokenizer, random_texts: Callable[[int, int], list[str]]
) -> None:
    texts = random_texts(5, 300)
    flat = tokenizer.encode_ids(texts, max_length)
    for text, ids, num_truncated in zip(texts, flat, flat.num_truncated, strict=True):
        tokens = tokenizer.encode(text, max_length=max_length)
        assert ids.tolist() == tokens.ids.tolist()
        assert num_truncated == tokens.num_truncated


def test_what_is_cut_off_is_counted(tokenizer: PipelineTokenizer) -> None:
    whole = tokenizer.encode("the cat sat on the mat", "the cat")
    tokens = tokenizer.encode("the cat sat on the mat", "the cat", max_length=8)
    assert len(tokens) == 8
    assert tokens.num_truncated == len(whole) - 8 == 3
    assert tokens.texts.tolist() == [-1, 0, 0, 0, -1, 1, 1, -1]
    assert tokens.words.tolist() == [-1, 0, 1, 2, -1, 6, 7, -1]


def test_truncation_from_the_left_is_honoured(pieces: list[str]) -> None:
    tokenizer = wordpiece_tokenizer(pieces, settings=Settings({"truncation_side": "left"}))
    tokens = tokenizer.encode("the cat sat", max_length=4)
    assert [tokenizer.token_of(id) for id in tokens.ids] == ["[CLS]", "cat", "sat", "[SEP]"]
    assert tokenizer.encode_ids(["the cat sat"], max_length=4).ids.tolist() == tokens.ids.tolist()


@pytest.mark.parametrize(("pair", "least"), [(None, 2), ("b", 3)])
def test_too_small_a_limit_is_explained(pair: str | None, least: int, tokenizer: PipelineTokenizer) -> None:
    assert tokenizer.encode("a", pair, max_length=least).num_truncated == (1 if pair is None else 2)
    with pytest.raises(TokenizerError, match=f"`max_length={least - 1}` leaves no room for the {least} special tokens"):
        tokenizer.encode("a", pair, max_length=least - 1)
    with pytest.raises(TokenizerError, match="`max_length=1` leaves no room for the 2 special tokens"):
        tokenizer.encode_ids([], max_length=1)


def test_words_index_the_given_list(tokenizer: PipelineTokenizer) -> None:
    tokens = tokenizer.encode_words(["didn't", "", "Unaffable"], ["the", "naïve"])
    words = ["didn't", "", "Unaffable", "the", "naïve"]
    covered = {int(word): "" for word in tokens.words if word >= 0}
    for word, (start, end) in zip(tokens.words.tolist(), tokens.offsets, strict=True):
        if word >= 0:
            covered[word] += words[word][start:end]
    assert covered == {0: "didn't", 2: "Unaffable", 3: "the", 4: "naïve"}


def test_words_of_byte_level_pieces_read_as_running_text(byte_level: PipelineTokenizer) -> None:
    words, pair = ["Paris", "is", "naïve", "今天"], ["The", "cat"]
    tokens = byte_level.encode_words(words, pair)
    expected = byte_level.encode(" ".join(words), " ".join(pair))
    assert tokens.ids.tolist() == expected.ids.tolist()
    for word, (start, end) in zip(tokens.words.tolist(), tokens.offsets.tolist(), strict=True):
        assert 0 <= start <= end <= (len([*words, *pair][word]) if word >= 0 else 0)
    starts = {int(word): int(tokens.offsets[tokens.words == word].min()) for word in set(tokens.words.tolist()) - {-1}}
    ends = {word: int(tokens.offsets[tokens.words == word].max()) for word in starts}
    assert set(starts.values()) == {0}
    assert [ends[word] for word in range(6)] == [len(word) for word in [*words, *pair]]


def test_a_byte_level_pair_has_one_type_but_two_texts(byte_level: PipelineTokenizer) -> None:
    tokens = byte_level.encode("the", "cat")
    assert set(tokens.segments.tolist()) == {0}
    texts = tokens.texts.tolist()
    assert sorted(set(texts)) == [-1, 0, 1]
    assert tokens.ids[tokens.texts == -1].tolist() == [0, 2, 2, 2]


def test_a_byte_level_mask_takes_its_space(byte_level: PipelineTokenizer) -> None:
    tokens = byte_level.encode("the <mask> cat")
    assert byte_level.token_of(tokens.ids[1]) != "Ġ"
    assert "Ġ" not in [byte_level.token_of(id) for id in tokens.ids]


def test_a_stated_mask_keeps_its_own_way(byte_bpe: tuple[dict[str, int], list[str]]) -> None:
    settings = Settings(names={"mask_token": "<mask>"}, added=((None, AddedToken("<mask>", special=True)),))
    tokenizer = byte_bpe_tokenizer(byte_bpe[0], [], settings=settings)
    assert [tokenizer.token_of(id) for id in tokenizer.encode("a <mask>").ids[1:-1]] == ["a", "Ġ", "<mask>"]


def test_byte_level_text_survives(byte_level: PipelineTokenizer) -> None:
    text = "Ünïcode 😀 今天\n\ttabs"
    assert byte_level.decode(byte_level.encode(text).ids) == text
    assert byte_level.decode(byte_level.encode(text).ids, skip_special=False) == f"<s>{text}</s>"


def test_decoding_joins_pieces(tokenizer: PipelineTokenizer) -> None:
    ids = tokenizer.encode("the unaffable cat").ids
    assert tokenizer.decode(ids) == "the unaffable cat"
    assert tokenizer.decode(ids, skip_special=False) == "[CLS] the unaffable cat [SEP]"
    assert tokenizer.decode([]) == ""


@pytest.mark.parametrize("id", [-1, 10**6])
def test_an_id_out_of_range_is_named(id: int, tokenizer: PipelineTokenizer) -> None:
    message = f"id {id} is not in the vocabulary, which has the ids 0 to {tokenizer.size - 1}"
    with pytest.raises(TokenizerError, match=message):
        tokenizer.decode(np.array([0, id]))
    with pytest.raises(TokenizerError, match=message):
        tokenizer.token_of(id)


def test_tokens_and_ids_answer_each_other(tokenizer: PipelineTokenizer) -> None:
    assert tokenizer.size == len({tokenizer.token_of(id) for id in range(tokenizer.size)})
    assert all(tokenizer.id_of(tokenizer.token_of(id)) == id for id in range(tokenizer.size))
    assert tokenizer.id_of("no such piece") is None


def test_a_lone_surrogate_is_an_input_error(tokenizer: PipelineTokenizer) -> None:
    with pytest.raises(InputError, match=r"text 1 holds the lone surrogate U\+D83D at character 2"):
        tokenizer.encode("fine", "no\ud83d")
    with pytest.raises(InputError, match=r"word 1 holds the lone surrogate"):
        tokenizer.encode_words(["fine", "\udfff"])
    with pytest.raises(InputError, match="text 0 is NoneType, not a string"):
        tokenizer.encode(None)  # type: ignore[arg-type]


def test_one_string_is_not_many(tokenizer: PipelineTokenizer) -> None:
    with pytest.raises(TokenizerError, match="encode_ids was given one string; give a list of texts"):
        tokenizer.encode_ids("the cat")
    with pytest.raises(TokenizerError, match="encode_words was given one string"):
        tokenizer.encode_words("the cat")
