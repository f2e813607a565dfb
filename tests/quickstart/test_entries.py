"""Entries: a name in words, a summary, a user's files; and the rows made of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.errors import FolderError, InputError
from bertie.quickstart.entries import (
    FEWEST,
    MOST_IN_GROUP,
    Collection,
    Entry,
    Row,
    collection,
    documents,
    format_characters,
    held_out_pairs,
    own_entries,
    read_entries,
    read_rows,
    split_summary,
    train_pairs,
    write_entries,
    write_rows,
)

Make = Callable[..., Entry]


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
def test_a_name_is_split_into_words(name: str, words: str, made: Make) -> None:
    assert made(name, "Summary.").words == words


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
    assert [entry.words for entry in entries] == ["csv reader", ""], "a file and a line are no words"
    assert [entry.text for entry in entries] == ["Reads rows.\nA line.\nAnother, 一.", "Only this."]
    (tmp_path / "entries.jsonl").write_text("{}\n")
    with pytest.raises(FolderError, match="cannot be read"):
        read_entries(tmp_path / "entries.jsonl")


def test_how_much_text_it_is() -> None:
    entry = Entry("a", "a", "a", "text", "x" * 1500, "")
    assert (format_characters([entry]), format_characters([entry] * 1000)) == ("1,500", "1.5 million")


def test_a_name_with_a_private_part_is_not_public() -> None:
    def is_public(name: str) -> bool:
        return Entry(name, "a", "a", "function", "b", "").is_public

    assert is_public("a.b")
    assert not is_public("a._b.c")
    assert not is_public("a.__init__")


def test_a_paragraph_is_an_entry_with_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(
        "".join(f"Number {number} begins. It goes on. It ends.\nAnother line.\n\n" for number in range(FEWEST))
    )
    notices: list[str] = []
    entries = own_entries([str(file)], "en", notices)
    assert len(entries) == FEWEST
    second = entries[1]
    assert (second.name, second.group, second.kind) == ("a.txt:4", "a.txt", "text")
    assert second.summary == "Number 1 begins."
    assert second.rest == "It goes on. It ends.\nAnother line."
    assert notices == []


def test_without_blank_lines_each_line_is_an_entry(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("".join(f"第{number}句在这里。然后是第二句。\n" for number in range(FEWEST)), "utf-8")
    notices: list[str] = []
    entries = own_entries([str(file)], "zh", notices)
    assert (entries[3].summary, entries[3].rest) == ("第3句在这里。", "然后是第二句。")
    assert len(entries) == FEWEST
    assert "each line is a document" in notices[0]


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One. More.\n\nTwo. More.\n\nThree.\n")
    with pytest.raises(InputError, match="only 2 texts to learn from, and 1 of hardly a word"):
        own_entries([str(tmp_path / "a.txt")], "en", [])


def test_texts_that_teach_nothing_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("This is one sentence alone.\n\n" * FEWEST + "Yes.\n\n")
    notices: list[str] = []
    assert len(own_entries([str(tmp_path / "a.txt")], "en", notices)) == FEWEST + 1
    assert notices == ["1 texts of hardly a word can be found, but nothing is learned from them"]


def test_names_start_at_the_folder_that_all_files_share(tmp_path: Path) -> None:
    for name in ("x/a.txt", "y/a.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("One text. And more.\n\n" * FEWEST)
    (tmp_path / "y/b.jsonl").write_text('{"text": "Text.", "title": "A title"}\n')
    entries = own_entries([str(tmp_path)], "en", [])
    assert {entry.group for entry in entries} == {"x/a.txt", "y/a.txt", "y/b.jsonl"}
    assert entries[0].name == "x/a.txt:1"
    assert (entries[-1].name, entries[-1].words) == ("A title", "A title")
    assert entries[0].words == ""


def test_a_title_above_its_text_is_no_summary(tmp_path: Path) -> None:
    rows = [
        {"title": "数学", "text": "数学\n数学是一門学科。它很古老。\n历史"},
        {"title": "哲学", "text": "哲学"},
    ] * FEWEST
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, alone, *_ = own_entries([str(tmp_path / "a.jsonl")], "zh", [])
    assert (first.name, first.summary, first.rest) == ("数学", "数学是一門学科。", "它很古老。\n历史")
    assert (alone.summary, alone.rest) == ("哲学", "")


def many(made: Make, group: str, count: int) -> list[Entry]:
    return [
        made(f"{group}.f{number}", f"Function {number} of {group} does this and that and more.")
        for number in range(count)
    ]


def test_a_document_has_all_of_a_module(made: Make) -> None:
    entries = [made("csv.reader", "Reads.", "More."), made("csv.writer", "Writes."), made("re.match", "Matches.")]
    assert list(documents(entries)) == [
        {"name": "csv", "text": "csv reader: Reads.\nMore.\ncsv writer: Writes."},
        {"name": "re", "text": "re match: Matches."},
    ]
    own = [made(f"a.txt:{number}", "First.", "Then.", kind="text") for number in range(2)]
    assert [row["name"] for row in documents(own)] == ["a.txt:0", "a.txt:1"]


def texts(rows: list[Row]) -> set[str]:
    return {row["text"] for row in rows}


def test_held_out_entries_are_not_learned_from(made: Make) -> None:
    entries = many(made, "a", 400)
    held_out, learned = texts(held_out_pairs(entries)), texts(train_pairs(entries))
    assert len(held_out) == 20
    assert held_out | learned == {entry.summary for entry in entries}
    assert not held_out & learned
    assert texts(held_out_pairs(entries[::-1])) == held_out, "chosen by name, not by place"


def test_rows_are_shuffled_the_same_way_every_time(made: Make) -> None:
    entries = many(made, "a", 400)
    assert train_pairs(entries) == train_pairs(entries)
    assert train_pairs(entries) != sorted(train_pairs(entries), key=lambda row: row["text"])


def test_entries_that_are_searched_are_learned_first(made: Make) -> None:
    private = [made(f"a._f{number}", f"Private function {number} does it.") for number in range(100)]
    public = many(made, "b", 100)
    pairs = train_pairs([*private, *public])
    first = next(number for number, row in enumerate(pairs) if row["text"].startswith("Private"))
    assert all(row["text"].startswith("Private") for row in pairs[first:])
    assert 80 < first <= 100


@pytest.mark.parametrize(("count", "expected"), [(20, 5), (60, 10), (400, 20), (0, 0)])
def test_few_entries_also_leave_some_to_measure_on(count: int, expected: int, made: Make) -> None:
    for group in ("a", "b", "c"):
        assert len(held_out_pairs(many(made, group, count))) == expected


def test_a_pair_is_a_summary_and_what_belongs_to_it(made: Make) -> None:
    entries = [
        made("csv.reader", "Reads.", "Rows of a file."),
        made("csv.writer", "Writes."),
        made("a.txt:1", "First.", "Then.", kind="text"),
        made("a.txt:2", "Alone.", kind="text"),
    ]
    assert [entry.pair for entry in entries] == [
        {"text": "Reads.", "other": "csv reader: Rows of a file."},
        {"text": "Writes.", "other": "csv writer"},
        {"text": "First.", "other": "Then."},
        None,
    ]
    titled = made("数学", "数学是一門学科。", "它很古老。", kind="titled")
    assert titled.pair == {"text": "数学是一門学科。", "other": "数学: 它很古老。"}


@pytest.mark.parametrize(
    ("sentence", "halves"),
    [
        ("The cow eats the grass.", ("The cow", "eats the grass.")),
        ("今天天气很好。", ("今天天", "气很好。")),
        ("Two words", None),
        ("Incomprehensibilities", None),
        ("好", None),
    ],
)
def test_a_sentence_alone_is_a_pair_of_halves(sentence: str, halves: tuple[str, str] | None, made: Make) -> None:
    expected = None if halves is None else {"text": halves[0], "other": halves[1]}
    assert made("a.txt:1", sentence, kind="text").pair == expected


def test_public_names_are_searched_the_shortest_of_large_groups(made: Make) -> None:
    deep = [made(f"big.part.deep{number}", "Deep.") for number in range(MOST_IN_GROUP)]
    entries = [*deep, made("big.near", "Near."), made("big._own", "Own."), made("python.if", "If.", kind="topic")]
    whole = collection(entries)
    found = whole.entries
    assert len(found) == MOST_IN_GROUP
    assert whole.left_out == {
        "topics of the language": 1,
        "with private names": 1,
        f"beyond the first {MOST_IN_GROUP} of a package": 1,
    }
    assert found[0].name == "big.near"
    assert not any("_own" in entry.name or entry.kind == "topic" for entry in found)
    own = [made(f"a.txt:{number}", "Text.", kind="text") for number in range(MOST_IN_GROUP + 5)]
    assert collection(own) == Collection(own, {}), "of a user's texts none is left out"


def test_a_text_is_found_under_its_name_and_summary(made: Make) -> None:
    assert made("csv.DictReader", "Maps rows.", "More.").search_text == "csv dict reader: Maps rows."
    assert made("a.txt:1", "First.", "Then.", kind="text").search_text == "First.\nThen."
    assert made("Title", "First.", "Then.", kind="titled").search_text == "Title: First.\nThen."


def test_rows_come_back(tmp_path: Path) -> None:
    rows = [{"text": "a\nb", "label": "一"}, {"text": ""}]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl") == rows
