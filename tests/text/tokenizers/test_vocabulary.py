"""Tokenizers made from lists: characters, words, WordPiece."""

import pytest

from bertie.errors import TokenizerError
from bertie.text.tokenizers.vocabulary import characters_tokenizer, wordpiece_tokenizer, words_tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_one_piece_a_character() -> None:
    tokenizer = characters_tokenizer([*SPECIALS, *"abc 今天."])
    tokens = tokenizer.encode("ab zc 今天.")
    assert [tokenizer.token_of(id) for id in tokens.ids[1:-1]] == ["a", "b", " ", "[UNK]", "c", " ", "今", "天", "."]
    assert tokens.offsets[1:-1].tolist() == [[i, i + 1] for i in range(9)]
    assert tokens.words.tolist() == [-1, 0, 0, 1, 2, 2, 3, 4, 5, 6, -1]
    assert tokenizer.kind == "characters"
    assert tokenizer.decode(tokenizer.encode("ab c天.").ids) == "ab c天."


def test_unknown_characters_are_counted_one_by_one() -> None:
    tokenizer = characters_tokenizer([*SPECIALS, "a"])
    assert tokenizer.encode("axyz\n").ids.tolist() == [2, 5, 1, 1, 1, 1, 3]
    assert tokenizer.encode("[MASK]a").ids.tolist() == [2, 4, 5, 3]


def test_characters_are_single() -> None:
    with pytest.raises(TokenizerError, match="'ab' is not one character; list single characters only"):
        characters_tokenizer([*SPECIALS, "ab"])


@pytest.mark.parametrize(
    ("split", "expected"),
    [("punctuation", ["don", "[UNK]", "t", "stop", "."]), ("whitespace", ["don't", "stop."])],
)
def test_words_split_as_asked(split: str, expected: list[str]) -> None:
    tokenizer = words_tokenizer([*SPECIALS, "don", "t", "stop", ".", "don't", "stop."], split=split)  # type: ignore[arg-type]
    tokens = tokenizer.encode("don't\t stop.")
    assert [tokenizer.token_of(id) for id in tokens.ids[1:-1]] == expected
    assert tokens.words[1:-1].tolist() == list(range(len(expected)))
    assert tokenizer.kind == "words"


def test_lower_case_is_a_choice() -> None:
    words = [*SPECIALS, "paris", "Paris"]
    assert words_tokenizer(words).encode("Paris").ids[1] == 6
    assert words_tokenizer(words, lowercase=True).encode("Paris").ids[1] == 5
    assert characters_tokenizer([*SPECIALS, "a"], lowercase=True).encode("A").ids.tolist() == [2, 5, 3]


def test_a_list_without_special_tokens_frames_nothing() -> None:
    tokenizer = words_tokenizer(["<unk>", "a"])
    assert tokenizer.encode("a b", "a").ids.tolist() == [1, 0, 1]
    assert tokenizer.special.unk == 0
    assert tokenizer.special.first is tokenizer.special.mask is None
    assert tokenizer.encode_ids(["a b a"], max_length=2).num_truncated.tolist() == [1]


@pytest.mark.parametrize("build", [characters_tokenizer, words_tokenizer, wordpiece_tokenizer])
def test_unknown_text_needs_a_token(build: type) -> None:
    with pytest.raises(TokenizerError, match=r"the vocabulary has no unknown token \[UNK\]"):
        build(["a", "b"])
    with pytest.raises(TokenizerError, match="the piece 'a' is listed twice, on lines 2 and 3"):
        build(["[UNK]", "a", "a"])


def test_words_over_the_limit_are_unknown(pieces: list[str]) -> None:
    tokenizer = wordpiece_tokenizer(pieces)
    assert tokenizer.special.unk not in tokenizer.encode("a" * 100).ids
    assert tokenizer.encode("a" * 101).ids.tolist() == [2, 1, 3]
