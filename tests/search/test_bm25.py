"""BM25: rare words count more, long documents less, and what is not shared nothing."""

import math

import pytest

from bertie.search.bm25 import BM25, BM25Index, words_of

DOCUMENTS = ["the cat sat", "the dog sat", "the cat and the dog and the bird sat there"]


@pytest.fixture
def measure() -> BM25:
    return BM25(DOCUMENTS)


def test_a_score_is_as_the_formula_has_it(measure: BM25) -> None:
    rarity = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    mean_length = (3 + 3 + 10) / 3
    expected = rarity * 2.2 / (1 + 1.2 * (1 - 0.75 + 0.75 * 3 / mean_length))
    assert measure.score("Cat?", DOCUMENTS[0]) == pytest.approx(expected)


def test_rare_words_count_more_and_long_documents_less(measure: BM25) -> None:
    assert measure.rarity("bird") > measure.rarity("cat") > measure.rarity("the") > 0
    assert measure.score("cat", DOCUMENTS[0]) > measure.score("cat", DOCUMENTS[2]) > measure.score("cat", DOCUMENTS[1])
    assert measure.score("nothing shared", DOCUMENTS[0]) == 0


def test_an_index_gives_every_document_the_score_of_the_measure(measure: BM25) -> None:
    query = "the Bird and the cat, the unknown"
    expected = [measure.score(query, document) for document in DOCUMENTS]
    assert BM25Index(DOCUMENTS).scores(query).tolist() == pytest.approx(expected)
    assert BM25Index(DOCUMENTS).scores("unknown").tolist() == [0, 0, 0]


def test_an_ideograph_is_a_word() -> None:
    assert words_of("Python 很好用v2") == ["python", "很", "好", "用", "v2"]
