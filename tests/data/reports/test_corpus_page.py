"""The page: well-formed, nothing from outside, nothing of the text taken for markup."""

import dataclasses
import re
from html.parser import HTMLParser
from typing import Any

from bertie.data.reports.corpus_page import corpus_page
from bertie.data.reports.corpus_report import report_corpus
from bertie.data.reports.leakage import Leakage

VOID = {"meta", "br", "img", "link"}


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.addresses += [str(value) for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(small: Any) -> None:
    report = report_corpus(small.corpus, small.tokenizer)
    leakage = Leakage(4, 1, 2, 10, 5, (0,))
    page = corpus_page(
        dataclasses.replace(report, leakage=leakage, leaked_texts=("a <b> text",), dropped={"near_copies": 7})
    )
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.addresses == []
    assert "script" not in reader.seen
    assert not re.search(r"https?:|url\(|@import", page)
    assert reader.seen.count("svg") == 3
    assert reader.seen.count("b") == 0
    assert "third" not in reader.seen
    assert "prefers-color-scheme: dark" in page
    assert "2 of 3 lines (66.67%)" in page
    assert "near copies" in page


def test_an_empty_report_has_a_page(small: Any) -> None:
    report = report_corpus(small.corpus, small.tokenizer)
    empty = dataclasses.replace(report, num_tokens=0, num_words=0, document_lengths=(), scripts={}, samples=())
    assert "nothing to show" in corpus_page(empty)
