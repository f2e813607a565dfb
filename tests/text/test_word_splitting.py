"""Raw text in words as training data has them: what is apart, what stays inside, and the default."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.text.tokenizers.alignment import Alignment
from bertie.text.word_splitting import SplitCounts, WordSplit


def words_in(text: str, split: WordSplit | None = None) -> list[str]:
    return [text[start:end] for start, end in (split or WordSplit()).spans(text)]


def learned(*sentences: str) -> WordSplit:
    """From sentences whose words have spaces between them."""
    counts = SplitCounts()
    for sentence in sentences:
        counts.add(sentence.split())
    return counts.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("City!!!", ["City", "!", "!", "!"]),
        (" (Rex)\t", ["(", "Rex", ")"]),
        ("London.Paris", ["London", ".", "Paris"]),
        ("“Ann’s” 50%", ["“", "Ann", "’", "s", "”", "50", "%"]),
        ("我们去北京。abc", ["我", "们", "去", "北", "京", "。", "abc"]),
        ("été naïf ひらがな 😀", ["été", "naïf", "ひらがな", "😀"]),
        ("e\u0301!\u0301a", ["e\u0301", "!\u0301a"]),
        (" \n ", []),
    ],
)
def test_by_default_punctuation_and_ideographs_are_words(text: str, words: list[str]) -> None:
    assert words_in(text) == words


def test_what_training_words_keep_inside_is_kept() -> None:
    split = learned(
        "The U.S. team won 3.5 to 1-0 in AL-AIN , 1,000 fans said .",
        "Ann 's dog , Rex , ran .",
        "He won in London .",
        "She saw Paris .",
    )
    text = "Ann's U.S. fans (2,500 in AL-AIN) saw 4.5!! London.Paris."
    words = [
        *("Ann", "'s", "U.S.", "fans", "(", "2,500", "in", "AL-AIN", ")"),
        *("saw", "4.5", "!", "!", "London", ".", "Paris", "."),
    ]
    assert words_in(text, split) == words


def test_punctuation_stays_attached_where_training_words_have_it() -> None:
    split = learned("so happy!!! @ann", "in London, with (Rex) today.", "see you; bye.")
    assert split.punctuation == "attached"
    assert words_in("City!!! (Rex) London.Paris", split) == ["City!!!", "(Rex)", "London.Paris"]
    assert learned("no marks at all", "none here").punctuation == "apart"


def test_ideographs_are_apart_unless_training_words_have_several() -> None:
    assert words_in("北京大学 很大", learned("我 们 去 北 京 。")) == list("北京大学很大")
    assert words_in("北京大学 很大。", learned("我们 去 北京 大学 。")) == ["北京大学", "很大", "。"]


def test_a_split_is_saved_with_its_alignment_and_old_ones_have_the_default() -> None:
    alignment = Alignment(split=learned("the U.S. team", "it is 3.5 ."))
    assert Alignment.from_json(alignment.to_json()) == alignment and alignment.split.joined
    assert Alignment.from_json('{"kind": "first", "unit": "words", "overlap": 64}').split == WordSplit()


@given(st.text())
def test_words_are_the_text_without_its_white_space(text: str) -> None:
    for split in (WordSplit(), learned("a.b c's d-e 3.5 , ."), WordSplit(punctuation="attached", ideographs="joined")):
        spans = split.spans(text)
        assert all(start < end for start, end in spans)
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
        assert "".join(words_in(text, split)) == "".join(text.split())


def test_real_sentences_are_split_as_their_training_data(shared: Path) -> None:
    """Written as a newspaper would, without spaces before commas and points."""
    parts = (shared / "data" / "conll2003" / "train.txt").read_text(encoding="utf-8").strip().split("\n\n")
    sentences = [[line.split()[0] for line in part.split("\n")] for part in parts if not part.startswith("-DOC")]
    counts = SplitCounts()
    for sentence in sentences[:10_000]:
        counts.add(sentence)
    num_same = {"learned": 0, "default": 0, "white space": 0}
    for sentence in sentences[10_000:]:
        text = ""
        for word in sentence:
            is_close = not text or word in (".", ",", ";", ":", "!", "?", ")", "'s", "n't") or text[-1] == "("
            text += word if is_close else f" {word}"
        num_same["learned"] += words_in(text, counts.split()) == sentence
        num_same["default"] += words_in(text) == sentence
        num_same["white space"] += text.split() == sentence
    total = len(sentences) - 10_000
    assert num_same["learned"] > 0.9 * total > num_same["default"] > num_same["white space"]
