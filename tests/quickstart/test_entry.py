from pathlib import Path

import pytest

from bertie.errors import FolderError
from bertie.quickstart.entry import Entry, characters_told, read_entries, split_summary, words_of, write_entries


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("csv.DictReader", "csv dict reader"),
        ("http.server.HTTPServer", "http server http server"),
        ("os.path.getmtime", "os path getmtime"),
        ("collections._count_elements", "collections count elements"),
        ("zipfile.ZipFile.__enter__", "zipfile zip file enter"),
    ],
)
def test_a_name_is_said_in_words(name: str, words: str) -> None:
    assert words_of(name) == words


def test_of_a_long_first_paragraph_the_first_sentence_is_the_summary() -> None:
    long = "Reads a file. " + "And says a lot of it. " * 20
    assert split_summary(["Reads a file. And closes it.", "More."]) == ("Reads a file. And closes it.", "More.")
    summary, rest = split_summary([long.strip(), "More."])
    assert summary == "Reads a file."
    assert f"{summary} {rest}" == f"{long.strip()}\nMore.", "nothing is lost"
    assert split_summary([]) == ("", "")


def test_entries_come_back_as_they_were(tmp_path: Path) -> None:
    entries = [
        Entry("csv.reader", "csv", "csv", "function", "Reads rows.", "A line.\nAnother, 一."),
        Entry("a.txt:3", "a.txt", "/x/a.txt", "text", "Only this.", ""),
    ]
    write_entries(tmp_path / "entries.jsonl", entries)
    assert read_entries(tmp_path / "entries.jsonl") == entries
    assert [entry.words for entry in entries] == ["csv reader", ""], "where a text stands says nothing of it"
    assert [entry.text for entry in entries] == ["Reads rows.\nA line.\nAnother, 一.", "Only this."]
    (tmp_path / "entries.jsonl").write_text("{}\n")
    with pytest.raises(FolderError, match="cannot be read"):
        read_entries(tmp_path / "entries.jsonl")


def test_how_much_text_it_is() -> None:
    entry = Entry("a", "a", "a", "text", "x" * 1500, "")
    assert (characters_told([entry]), characters_told([entry] * 1000)) == ("1,500", "1.5 million")


def test_a_name_with_a_private_part_is_not_public() -> None:
    def is_public(name: str) -> bool:
        return Entry(name, "a", "a", "function", "b", "").is_public

    assert is_public("a.b")
    assert not is_public("a._b.c")
    assert not is_public("a.__init__")
