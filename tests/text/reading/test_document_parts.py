"""Documents that would not fit: a text file without blank lines is one huge document."""

from pathlib import Path

import pytest

from bertie.errors import InputError
from bertie.text.reading.documents import Boundary, DocumentOptions, slices


@pytest.mark.parametrize("boundary", ["blank-line", "file"])
def test_a_document_without_end_is_refused(tmp_path: Path, boundary: Boundary) -> None:
    (tmp_path / "a.txt").write_text("a short line\n" * 100)
    options = DocumentOptions(boundary=boundary, max_line_bytes=200)
    with pytest.raises(InputError, match=r"a\.txt:1: the document .should each line be one.* limit of 200 bytes"):
        [list(each.read()) for each in slices([str(tmp_path / "a.txt")], options)]


def test_a_wiki_document_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wiki_00").write_text('<doc id="1" title="a">\n' + "a short line\n" * 100 + "</doc>\n")
    options = DocumentOptions(max_line_bytes=200)
    with pytest.raises(InputError, match=r"wiki_00:1: the document .is a </doc> missing.* limit of 200 bytes"):
        [list(each.read()) for each in slices([str(tmp_path / "wiki_00")], options)]


def test_the_limit_is_of_one_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a short line\n\n" * 100)
    options = DocumentOptions(max_line_bytes=200)
    found = [document for each in slices([str(tmp_path / "a.txt")], options) for document in each.read()]
    assert len(found) == 100
