"""Counts of words: those of the tokenizer itself, whatever the cutting into slices, and honest where memory ends."""

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bertie.text.vocab import counting
from bertie.text.vocab.counting import (
    BASE_BYTES,
    Counting,
    Tally,
    WordCounts,
    count_slice,
    count_words,
    entry_bytes,
    is_held_out,
)
from bertie.text.vocab.pipelines import build_splitter
from bertie.text.vocab.vocab_options import KINDS, VocabOptions


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
    words = Tally([("a", 5), ("b", 3), ("c", 1), ("d", 1), ("e", 2)])
    assert words.num_bytes == 5 * entry_bytes("a")
    assert words.prune(5 * entry_bytes("a")) == 0 and len(words) == 5
    assert words.prune(round(2.7 * entry_bytes("a"))) == 4
    assert words == {"a": 5, "b": 3} and words.num_bytes == 2 * entry_bytes("a")


def test_of_equally_rare_words_a_sample_stays() -> None:
    every = [(f"word{number}", 1) for number in range(4000)]
    first, second = Tally([*every, ("frequent", 2)]), Tally([("frequent", 2), *reversed(every)])
    room = first.num_bytes * 2 // 3
    assert first.prune(room) == second.prune(room) == 4001 - len(first)
    assert first == second and "frequent" in first
    assert 0.7 * room < first.num_bytes < 0.8 * room
    assert first.num_bytes == sum(map(entry_bytes, first))


def test_long_words_cost_their_length(as_slice: Callable[..., Any]) -> None:
    counting = replace(counting_of("unigram"), ram=BASE_BYTES + 4_000_000)
    short, long = (" ".join(f"{number:0{width}}" for number in range(1500)) for width in (5, 2000))
    assert count_words([as_slice(short)], counting).num_pruned == 0
    counts = count_words([as_slice(long)], counting)
    assert counts.num_pruned == 1500 - len(counts.words) > 500
    assert sum(map(entry_bytes, counts.words)) == counts.words.num_bytes <= counting.room // 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_document_has_the_words_of_its_parts(
    kind: str, as_slice: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, documents: list[str]
) -> None:
    text = "\n".join(documents[:40]) + "  \t a   b \n\n c\u3000d"
    whole = count_words([as_slice(text)], counting_of(kind))
    monkeypatch.setattr(counting, "CUT_AT_ONCE", 30)
    assert "".join(counting.segments(text)) == text and len(list(counting.segments(text))) > 50
    assert count_words([as_slice(text)], counting_of(kind)).words == whole.words


def test_very_long_text_without_white_space_is_cut_and_counted(as_slice: Callable[..., Any]) -> None:
    text = "语言" * 12_000
    counts = count_words([as_slice(text, text, "short")], counting_of("wordpiece"))
    assert counts.words == {"语": 24_000, "言": 24_000, "short": 1} and counts.num_cut == 4


def test_a_slice_counted_elsewhere_is_the_same(as_slice: Callable[..., Any], documents: list[str]) -> None:
    small = replace(counting_of("byte-bpe", held_out=5), ram=BASE_BYTES + 200_000)
    parts = [as_slice(*documents[start : start + 30]) for start in range(0, 120, 30)]
    here = count_words(parts, small)
    there = WordCounts()
    for part in parts:
        there.add(pickle.loads(pickle.dumps(count_slice(part, small))), small.room)
    assert here.num_pruned > 0 and here == there
    assert (here.words.num_bytes, here.held_out.num_bytes) == (there.words.num_bytes, there.held_out.num_bytes)


def test_a_copy_is_held_out_with_its_original(documents: list[str]) -> None:
    assert {is_held_out(text, 3) for text in documents} == {True, False}
    assert not any(is_held_out(text, 0) for text in documents)
