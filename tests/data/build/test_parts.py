from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.build import parts
from bertie.data.build.journal import Journal
from bertie.data.build.parts import cut, works
from bertie.text.reading.documents import Document, DocumentOptions, slices


def test_documents_are_cut_by_their_bytes() -> None:
    documents = [Document("ab" * 5, str(number), "") for number in range(5)]
    lists = [([document.name for document in found], size) for found, size in cut(documents, 20)]
    assert lists == [(["0", "1"], 20), (["2", "3"], 20), (["4"], 10)]


def test_a_large_slice_is_handed_out_in_parts_and_only_what_is_missing(
    tmp_path: Path, write_documents: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_documents([f"text number {number}" for number in range(20)])
    whole = slices([path], DocumentOptions())
    monkeypatch.setattr(parts, "LARGEST_SLICE", 10)
    monkeypatch.setattr(parts, "PART_BYTES", 60)
    with Journal(tmp_path / "corpus") as journal:
        journal.start({}, {}, lambda stage, part, facts: True)
        first = {work.key: [document.text for document in work.documents()] for work in works(whole, journal, "tokens")}
        assert len(first) > 2 and sum(map(len, first.values())) == 20
        skipped = list(first)[1]
        journal.note("tokens", skipped, {})
        again = {work.key: [document.text for document in work.documents()] for work in works(whole, journal, "tokens")}
        assert again == {key: texts for key, texts in first.items() if key != skipped}
        for key in again:
            journal.note("tokens", key, {})
        monkeypatch.setattr(type(whole[0]), "read", None)  # a finished slice is not read again
        assert list(works(whole, journal, "tokens")) == []
