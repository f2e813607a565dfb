import json
from pathlib import Path

import pytest

from bertie.errors import InputError
from bertie.quickstart.own_text import FEWEST, own_entries


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
    with pytest.raises(InputError, match="only 2 texts to learn from, beside 1 of hardly a word"):
        own_entries([str(tmp_path / "a.txt")], "en", [])


def test_texts_that_teach_nothing_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("This is one sentence alone.\n\n" * FEWEST + "Yes.\n\n")
    notices: list[str] = []
    assert len(own_entries([str(tmp_path / "a.txt")], "en", notices)) == FEWEST + 1
    assert notices == ["1 texts of hardly a word can be found, but teach nothing"]


def test_names_are_told_from_the_folder_that_all_files_share(tmp_path: Path) -> None:
    for name in ("x/a.txt", "y/a.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("One text. And more.\n\n" * FEWEST)
    (tmp_path / "y/b.jsonl").write_text('{"text": "Told.", "title": "A title"}\n')
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
