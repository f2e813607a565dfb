"""The report's numbers, counted by hand on a small corpus."""

from typing import Any

import pytest

from bertie.data.reports.corpus_report import report_corpus, script_of


def test_counts(small: Any) -> None:
    report = report_corpus(small.corpus, small.tokenizer)
    # Two pieces more than words for "unaffable", one for each "cats".
    assert (report.num_documents, report.num_sentences) == (3, 4)
    assert report.num_tokens == 10 + 4 + 7 + 20 == small.corpus.num_tokens
    assert report.num_words == 7 + 4 + 7 + 16
    assert report.num_unknown == 1
    assert report.unknown_rate == pytest.approx(1 / 41)


def test_histograms_hold_everything(small: Any) -> None:
    report = report_corpus(small.corpus, small.tokenizer)
    assert [(bin.low, bin.high, bin.count) for bin in report.document_lengths] == [(4, 7, 1), (8, 15, 1), (16, 31, 1)]
    assert [(bin.low, bin.count) for bin in report.sentence_lengths] == [(4, 2), (8, 1), (16, 1)]


def test_what_a_length_would_cut(small: Any) -> None:
    (cut, whole) = report_corpus(small.corpus, small.tokenizer, lengths=[12, 128]).cuts
    # A row of 12 has room for 10: documents have 14, 7 and 20 tokens, sentences 10, 4, 7 and 20.
    assert cut.documents == pytest.approx(2 / 3)
    assert cut.document_tokens == pytest.approx((4 + 10) / 41)
    assert cut.sentences == pytest.approx(1 / 4)
    assert cut.sentence_tokens == pytest.approx(10 / 41)
    assert (whole.documents, whole.sentence_tokens) == (0, 0)


def test_script_mix(small: Any) -> None:
    scripts = report_corpus(small.corpus, small.tokenizer).scripts
    assert sum(scripts.values()) == pytest.approx(1)
    assert scripts["Han"] == pytest.approx(4 / 41)
    assert scripts["digits"] == scripts["unknown"] == pytest.approx(1 / 41)
    assert next(iter(scripts)) == "Latin"


def test_samples_name_their_document(small: Any) -> None:
    names = [name for name, _ in report_corpus(small.corpus, small.tokenizer).samples]
    assert names == ["0: first", "1: second", "2: <third>"]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("the", "Latin"),
        ("##é", "Latin"),
        ("词", "Han"),
        ("か", "Hiragana"),
        ("ж", "Cyrillic"),
        ("ﷺ", "Arabic"),
        ("한", "Hangul"),
        ("42", "digits"),
        ("。", "signs"),
        ("", "signs"),
    ],
)
def test_scripts(text: str, script: str) -> None:
    assert script_of(text) == script
