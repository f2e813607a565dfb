import functools
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.text.segmenters import JiebaSegmenter, Segmenter, SpaceSegmenter
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.tokenizers.vocabulary import (
    byte_bpe_tokenizer,
    characters_tokenizer,
    wordpiece_tokenizer,
    words_tokenizer,
)
from bertie.text.words import Chunk, chunk, chunk_all, keeps_chunks

TEXT = "使用语言模型来预测下一个词的probability"
PIECES = (
    *(
        "使用",
        "语言",
        "模型",
        "预测",
        "下一个",
        "葛城",
        "T恤",
        "卡拉OK",
        "IC卡",
        "3D打印",
        "數學",
        "豈",
        "𠀀",
        "㐀",
        "\U0002b900",
    ),
    *("probability", "Naïve", "ΑΣ", "a", "T", "7", "東京", "テスト", "がぎ", "한국어", "😀", "👨‍👩‍👧", "❤️"),
    *("\u0301", "\u0327", "\u3099", "\ufe0f", "\U000e0100", "\u200d", "\u200b", "\u00ad", "\x07", "\u0903"),
    *(
        " ",
        "  ",
        "\t",
        "\u3000",
        "，",
        "。",
        "“",
        "”",
        "(",
        ")",
        "-",
        "_",
        ".",
        "…",
        "·",
        "％",
        "々",
        "〇",
        "＋",
        "＄",
        "＜",
        "〄",
        "\x0c",
        "[MASK]",
        "[",
        "##",
    ),
)
MIXED = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=25).map("".join)
LETTERS = sorted(set("".join(PIECES) + "".join(PIECES).lower() + "aeiouAEIOUσ語言預測"))
SEGMENTERS: tuple[Segmenter, ...] = (JiebaSegmenter((("语言模型", None), ("GPU卡", None))), SpaceSegmenter())


@functools.cache
def tokenizer(lowercase: bool, native: bool = True) -> PipelineTokenizer:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [letter for letter in LETTERS if not letter.isspace()]
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters if letter.isalpha()), "prob", "##ability"]
    built = wordpiece_tokenizer(list(dict.fromkeys(pieces)), lowercase=lowercase)
    if not native:
        built.__dict__["fast_ids"] = None
    return built


def units(sentence: str, segmenter: Segmenter | None) -> list[str]:
    return [text for text, is_word in chunk(sentence, segmenter) if is_word]


def test_words_of_the_segmenter_are_units() -> None:
    assert {"语言", "模型", "预测"} <= set(units(TEXT, JiebaSegmenter()))
    # A Latin word is left to the pieces, of which only its first begins a word.
    assert chunk(TEXT, JiebaSegmenter())[-1] == Chunk("词的probability", False)
    pieces = tokenizer(True)
    begins = ~pieces.continues[pieces.encode_pieces(["词的probability"]).ids]
    assert begins.tolist() == [True, True, True, False]


def test_a_user_dictionary_makes_longer_units() -> None:
    assert "语言模型" in units(TEXT, JiebaSegmenter((("语言模型", None),)))


def test_pre_segmented_text() -> None:
    assert units("使用 语言模型 来 预测下。 the 词 T恤", SpaceSegmenter()) == ["使用", "语言模型", "预测下", "T恤"]


def test_without_a_segmenter_and_without_ideographs_a_sentence_is_one_run() -> None:
    assert chunk(TEXT, None) == [Chunk(TEXT, False)]
    assert chunk("Nur Wörter, 한국어 テスト", JiebaSegmenter()) == [Chunk("Nur Wörter, 한국어 テスト", False)]
    assert chunk("", JiebaSegmenter()) == []


def test_words_with_latin_letters_are_units_only_where_the_tokens_stay() -> None:
    assert units("我穿T恤，好", JiebaSegmenter()) == ["T恤"]
    assert units("我穿abT恤", JiebaSegmenter()) == []


def test_no_boundary_before_a_combining_mark() -> None:
    assert units("语言\u0301模型", JiebaSegmenter()) == ["模型"]


@settings(deadline=None, max_examples=300)
@given(MIXED, st.sampled_from(SEGMENTERS), st.booleans(), st.booleans())
def test_chunks_are_the_sentence_and_have_its_tokens(
    sentence: str, segmenter: Segmenter, lowercase: bool, native: bool
) -> None:
    chunks = chunk(sentence, segmenter)
    assert "".join(text for text, _ in chunks) == sentence
    assert all(text for text, _ in chunks)
    for text, _ in chunks[1:]:
        assert not unicodedata.category(text[0]).startswith("M")
    encode = tokenizer(lowercase, native).encode_pieces
    assert encode([text for text, _ in chunks]).ids.tolist() == encode([sentence]).ids.tolist()


@settings(deadline=None)
@given(st.lists(MIXED, max_size=5), st.sampled_from((*SEGMENTERS, None)))
def test_many_sentences_are_chunked_as_each_alone(sentences: list[str], segmenter: Segmenter | None) -> None:
    every = chunk_all(sentences, segmenter)
    alone = [chunk(sentence, segmenter) for sentence in sentences]
    assert every.counts.tolist() == [len(chunks) for chunks in alone]
    assert list(zip(every.texts, every.is_word.tolist(), strict=True)) == [part for chunks in alone for part in chunks]


@pytest.mark.parametrize("lowercase", [False, True])
def test_tokenizers_that_isolate_ideographs_keep_chunks(lowercase: bool) -> None:
    assert keeps_chunks(tokenizer(lowercase))
    letters = ["[UNK]", *(letter for letter in LETTERS if not letter.isspace())]
    assert keeps_chunks(characters_tokenizer([*letters, " "]))
    assert not keeps_chunks(wordpiece_tokenizer(letters, lowercase=lowercase, split_ideographs=False))
    assert not keeps_chunks(words_tokenizer(letters))


def test_byte_level_bpe_does_not_keep_chunks(byte_bpe: tuple[dict[str, int], list[str]]) -> None:
    vocabulary, merges = byte_bpe
    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in merges[1:])]
    assert not keeps_chunks(byte_bpe_tokenizer(vocabulary, pairs))
