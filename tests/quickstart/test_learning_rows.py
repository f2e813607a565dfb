from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.quickstart.entry import Entry
from bertie.quickstart.learning_rows import (
    MOST_IN_GROUP,
    Collection,
    collection,
    documents,
    held_out,
    labelled,
    learned,
    pairs,
    read_rows,
    searched,
    write_rows,
)

Make = Callable[..., Entry]


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


def test_what_is_held_out_is_not_learned(made: Make) -> None:
    entries = many(made, "a", 400)
    kept, taught = held_out(entries), learned(entries)
    assert len(kept) == 20
    assert not set(kept) & set(taught)
    assert len(kept) + len(taught) == 400
    assert held_out(entries[::-1]) == kept[::-1], "by name, not by place"


@pytest.mark.parametrize(("count", "expected"), [(20, 5), (60, 10), (400, 20), (0, 0)])
def test_also_of_few_there_are_some_to_measure_on(count: int, expected: int, made: Make) -> None:
    for group in ("a", "b", "c"):
        assert len(held_out(many(made, group, count))) == expected


def test_labels_are_balanced_and_measured_on_others(made: Make) -> None:
    entries = [*many(made, "big", 900), *many(made, "small", 300), *many(made, "rare", 5), made("big.short", "No.")]
    train, dev = labelled(entries, 200)
    assert Counter(row["label"] for row in train) == {"big": 100, "small": 100}
    assert set(Counter(row["label"] for row in dev)) == {"big", "small"}
    assert not {row["text"] for row in train} & {row["text"] for row in dev}
    assert train != sorted(train, key=lambda row: row["label"]), "in no order"
    assert labelled(entries, 200) == (train, dev)
    few, _ = labelled(entries, 10**6)
    counts = Counter(row["label"] for row in few)
    assert counts["big"] == counts["small"] == len(learned(many(made, "small", 300)))


def test_one_group_has_nothing_to_tell_apart(made: Make) -> None:
    assert labelled(many(made, "only", 100), 50) == ([], [])


def test_a_pair_is_a_summary_and_what_belongs_to_it(made: Make) -> None:
    entries = [
        made("csv.reader", "Reads.", "Rows of a file."),
        made("csv.writer", "Writes."),
        made("a.txt:1", "First.", "Then.", kind="text"),
        made("a.txt:2", "Alone.", kind="text"),
    ]
    assert pairs(entries) == [
        {"text": "Reads.", "other": "csv reader: Rows of a file."},
        {"text": "Writes.", "other": "csv writer"},
        {"text": "First.", "other": "Then."},
    ]
    titled = made("数学", "数学是一門学科。", "它很古老。", kind="titled")
    assert pairs([titled]) == [{"text": "数学是一門学科。", "other": "数学: 它很古老。"}]


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
    expected = [] if halves is None else [{"text": halves[0], "other": halves[1]}]
    assert pairs([made("a.txt:1", sentence, kind="text")]) == expected


def test_public_names_are_searched_the_shortest_of_large_groups(made: Make) -> None:
    deep = [made(f"big.part.deep{number}", "Deep.") for number in range(MOST_IN_GROUP)]
    entries = [*deep, made("big.near", "Near."), made("big._own", "Own."), made("python.if", "If.", kind="topic")]
    whole = collection(entries)
    found = whole.entries
    assert len(found) == MOST_IN_GROUP
    assert whole.left_out == {
        "topics of the language": 1,
        "under private names": 1,
        f"beyond the first {MOST_IN_GROUP} of a package": 1,
    }
    assert found[0].name == "big.near"
    assert not any("_own" in entry.name or entry.kind == "topic" for entry in found)
    own = [made(f"a.txt:{number}", "Text.", kind="text") for number in range(MOST_IN_GROUP + 5)]
    assert collection(own) == Collection(own, {}), "of a user's texts none is left out"


def test_a_text_is_found_under_its_name_and_summary(made: Make) -> None:
    assert searched(made("csv.DictReader", "Maps rows.", "More.")) == "csv dict reader: Maps rows."
    assert searched(made("a.txt:1", "First.", "Then.", kind="text")) == "First.\nThen."
    assert searched(made("Title", "First.", "Then.", kind="titled")) == "Title: First.\nThen."


def test_rows_come_back(tmp_path: Path) -> None:
    rows = [{"text": "a\nb", "label": "一"}, {"text": ""}]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl") == rows
