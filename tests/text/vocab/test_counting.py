"""Counts of words: those of the tokenizer itself, whatever the cutting into slices, and honest where memory ends."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bertie.text.vocab.counting import Counting, WordCounts, count_words, is_held_out
from bertie.text.vocab.options import KINDS, VocabOptions
from bertie.text.vocab.pipelines import build_splitter


def counting_of(kind: str, held_out: int = 0) -> Counting:
    options = VocabOptions(kind=kind)
    return Counting(build_splitter(options), options.keeps_spaces, held_out=held_out)


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_those_of_the_pipeline(
    kind: str, as_slice: Callable[..., Any], random_texts: Callable[[int, int], list[str]]
) -> None:
    counting = counting_of(kind)
    # Between texts stands a line end, which byte-level pieces would join to white space at the edges.
    texts = [text.strip() for text in random_texts(7, 400)] + ["a  b   c\n\nd\te \n f", "don't stop, it's 19!"]
    expected: Counter[str] = Counter()
    for text in texts:
        normalizer, pre_tokenizer = counting.splitter.normalizer, counting.splitter.pre_tokenizer
        normal = normalizer.normalize_str(text) if normalizer is not None else text
        expected.update(word for word, _ in pre_tokenizer.pre_tokenize_str(normal))
    assert count_words([as_slice(*texts)], counting).words == expected


def test_slices_add_up(as_slice: Callable[..., Any], documents: list[str]) -> None:
    counting = counting_of("wordpiece", held_out=5)
    whole = count_words([as_slice(*documents)], counting)
    parts = count_words([as_slice(*documents[:50]), as_slice(*documents[50:])], counting)
    assert (whole.words, whole.held_out) == (parts.words, parts.held_out)
    assert whole.num_documents == parts.num_documents == len(documents)
    assert whole.num_held_out == sum(is_held_out(text, 5) for text in documents) > 0


def test_the_rarest_are_pruned_and_counted() -> None:
    counts = WordCounts(Counter({"a": 5, "b": 3, "c": 1, "d": 1}))
    counts.prune(max_words=4)
    assert len(counts.words) == 4
    counts.prune(max_words=3)
    assert counts.words == {"a": 5, "b": 3}
    assert counts.num_pruned == 2


def test_a_copy_is_held_out_with_its_original(documents: list[str]) -> None:
    assert {is_held_out(text, 3) for text in documents} == {True, False}
    assert not any(is_held_out(text, 0) for text in documents)
