import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.data.duplicates import (
    NUM_VALUES,
    THRESHOLD,
    band_keys,
    candidate_pairs,
    exact_hash,
    shingles,
    signatures,
    similarity,
)

WORDS = [f"word{number}" for number in range(5000)]
CHARACTERS = [*map(chr, range(0x4E00, 0x5600)), *"0123456789abcdefghijklmnopqrstuvwxyz，。" * 10]


def signature_of(text: str) -> np.ndarray:
    hashes, counts, _ = shingles([text])
    return signatures(hashes, counts)


def test_a_shingle_is_three_words_and_its_hash_depends_on_them_alone() -> None:
    hashes, counts, units = shingles(["one two three four", "zero one two three", "two three"])
    assert counts.tolist() == [2, 2, 1] and units.tolist() == [4, 4, 2]
    assert hashes[0] == hashes[3]  # "one two three", wherever it stands
    assert len(set(hashes.tolist())) == 4


def test_case_and_line_breaks_do_not_count_and_texts_are_not_crossed() -> None:
    first, _, _ = shingles(["One Two\n\nTHREE"])
    second, counts, _ = shingles(["one two three", "four five six"])
    assert first[0] == second[0] and counts.tolist() == [1, 1]


def test_where_a_word_begins_counts() -> None:
    hashes, _, _ = shingles(["ab c d", "a bc d", "a b cd"])
    assert len(set(hashes.tolist())) == 3


def test_scripts_without_spaces_have_shingles_of_characters() -> None:
    hashes, counts, units = shingles(["使用语言模型"])
    assert counts.tolist() == [4] and units.tolist() == [6]
    spaced, _, _ = shingles(["使用 语言\n模型"])
    assert (spaced == hashes).all()
    mixed, _, units = shingles(["many words and few ideographs 使用语言模型"])
    assert units.tolist() == [11] and set(hashes) <= set(mixed)


def test_among_ideographs_letters_and_digits_are_units_too() -> None:
    _, _, units = shingles(["于1998年用GPU", "an English text with 年 in it"])
    assert units.tolist() == [10, 7]


@given(st.lists(st.text(max_size=40), max_size=8))
def test_any_text_has_shingles_or_none(texts: list[str]) -> None:
    hashes, counts, units = shingles(texts)
    assert len(counts) == len(units) == len(texts) and counts.sum() == len(hashes)
    assert ((counts > 0) == (units > 0)).all() and (counts <= np.maximum(units, 0)).all()


def test_the_estimate_is_close_to_the_similarity() -> None:
    rng = random.Random(0)
    errors = []
    for _ in range(60):
        kept, first, second = (rng.sample(WORDS, 300), rng.sample(WORDS, 100), rng.sample(WORDS, 100))
        texts = (" ".join(kept + first), " ".join(kept + second))
        found = [set(shingles([text])[0].tolist()) for text in texts]
        true = len(found[0] & found[1]) / len(found[0] | found[1])
        errors.append(similarity(signature_of(texts[0]), signature_of(texts[1]))[0] - true)
    assert abs(np.mean(errors)) < 0.02 and np.std(errors) < 2 * 0.5 / NUM_VALUES**0.5


@pytest.mark.parametrize(("share", "is_copy"), [(0.05, True), (0.10, False)])
@pytest.mark.parametrize(("units", "between"), [(WORDS, " "), (CHARACTERS, "")])
def test_few_changed_units_are_a_copy_and_a_tenth_is_not(
    units: list[str], between: str, share: float, is_copy: bool
) -> None:
    rng = random.Random(1)
    agreeing = 0
    for _ in range(200):
        text = rng.choices(units, k=600)
        changed = list(text)
        for place in rng.sample(range(600), round(share * 600)):
            changed[place] = rng.choice(units)
        close = similarity(signature_of(between.join(text)), signature_of(between.join(changed)))[0] >= THRESHOLD
        agreeing += close == is_copy
    assert agreeing >= 190


def test_signatures_do_not_depend_on_the_texts_beside() -> None:
    hashes, counts, _ = shingles(["one two three four five", "six seven eight nine"])
    both = signatures(hashes, counts)
    assert (both[0] == signature_of("one two three four five")[0]).all()
    assert signatures(hashes[:0], counts[:0]).shape == (0, NUM_VALUES)


def test_keys_are_equal_where_all_values_are() -> None:
    values = np.array([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7], [1, 2, 3, 4, 5, 6]], np.uint8)
    keys = band_keys(values)
    assert keys[0] == keys[2] != keys[1]


def test_pairs_of_small_buckets_are_complete_and_of_large_ones_few() -> None:
    keys, items = np.array([7, 7, 9, 7, 9], np.uint64), np.array([4, 0, 3, 2, 1])
    pairs = set(zip(*(side.tolist() for side in candidate_pairs(keys, items)), strict=True))
    assert pairs == {(0, 2), (0, 4), (2, 4), (1, 3)}
    earlier, later = candidate_pairs(np.zeros(1000, np.uint64), np.arange(1000))
    assert (earlier < later).all() and len(earlier) < 8 * 1000
    assert set(later.tolist()) == set(range(1, 1000)) and (0, 999) in set(
        zip(earlier.tolist(), later.tolist(), strict=True)
    )


def test_exact_hashes_are_of_the_text() -> None:
    assert exact_hash("a") == exact_hash("a") != exact_hash("b")
