"""Labelled rows: which column plays which role, and what training said about files."""

import io
from pathlib import Path
from typing import Any

import pytest

from bertie.data.rows.memory_rows import rows_of
from bertie.errors import InputError, SpecError
from bertie.reporting.events import Event
from bertie.tasks.classification import Classify, Pair
from bertie.tasks.labelled import Labelled, Reading, open_labelled
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.task import Task


def opened(task: Task, path: Path, content: str | bytes, **options: Any) -> tuple[Labelled, str]:
    """The rows, and all that was reported."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    events: list[Event] = []
    found = open_labelled(task, [path], on_event=events.append, **options)
    return found, "\n".join(event.message for event in events)


def test_columns_of_training_hold(tmp_path: Path) -> None:
    content = "a1\t0\t*\tone text here\na1\t1\t\tanother text\n"
    trained = Reading(column={"text": "column4", "label": "column2"})
    with pytest.raises(InputError, match="not clear which column is the label"):
        opened(Classify(), tmp_path / "a.tsv", content)
    found, said = opened(Classify(), tmp_path / "a.tsv", content, trained=trained)
    assert found.columns == {"text": "column4", "label": "column2"} and "'column4', as in training" in said
    found, _ = opened(Classify(), tmp_path / "a.tsv", content, columns={"label": "column3"}, trained=trained)
    assert found.columns == {"text": "column4", "label": "column3"}


def test_columns_that_are_not_there_are_guessed(tmp_path: Path) -> None:
    trained = Reading(column={"text": "body", "label": "stars"})
    found, said = opened(Classify(), tmp_path / "a.csv", "text\nhello\n", trained=trained, targets=False)
    assert found.columns == {"text": "text"}
    assert "there is no column 'body', which was the text in training: another one is chosen" in said


def test_the_format_of_training_holds_for_files_that_may_have_it(tmp_path: Path) -> None:
    trained = Reading(format="quoted-tsv", header=True)
    found, said = opened(Classify(), tmp_path / "a.tsv", 'text\tlabel\n"a"\t1\n"b"\t0\n', trained=trained)
    assert found.values(0)[0] == {"text": "a", "label": "1"} and "`format=quoted-tsv`, as in training" in said
    _, said = opened(Classify(), tmp_path / "a.jsonl", '{"text": "a", "label": 1}\n', trained=trained)
    assert "a.jsonl: read by its ending, not as quoted-tsv as in training" in said


def test_the_encoding_of_training_holds_unless_the_file_is_utf8(tmp_path: Path) -> None:
    trained, content = Reading(encoding="gb18030"), "text,label\n很好,1\n很差,0\n"
    for encoding, reported in (("gb18030", "`encoding=gb18030`, as in training"), ("utf-8", "read as UTF-8, not as")):
        found, said = opened(Classify(), tmp_path / "a.csv", content.encode(encoding), trained=trained)
        assert found.values(0)[0]["text"] == "很好" and reported in said


def test_lines_without_labels_keep_their_first_word(tmp_path: Path) -> None:
    task, trained = Classify(labels=("neg", "pos")), Reading(format="label-text")
    found, said = opened(task, tmp_path / "a.txt", "how far is it\n\nneg\n", trained=trained, targets=False)
    assert [found.values(number)[0] for number in range(3)] == [
        {"text": "how far is it"},
        {"text": ""},
        {"text": "neg"},
    ]
    assert "they are read as texts" in said
    found, _ = opened(task, tmp_path / "a.txt", "pos how far\nneg is it\n", trained=trained, targets=False)
    assert found.values(0)[0] == {"text": "how far"}


def test_a_blank_line_is_a_row_that_wants_an_answer_but_none_to_learn_from(tmp_path: Path) -> None:
    content = "__label__a one\n\n__label__b two\n\n"
    assert opened(Classify(), tmp_path / "a.txt", content)[0].rows.num_rows == 2
    assert opened(Classify(), tmp_path / "a.txt", content, targets=False)[0].rows.num_rows == 4


def test_annotators_who_did_not_agree_give_no_label(tmp_path: Path) -> None:
    lines = [f'{{"gold_label": "{label}", "sentence1": "a", "sentence2": "b"}}\n' for label in ("neutral", "-")]
    found, said = opened(Pair(), tmp_path / "a.jsonl", "".join(lines))
    assert "label" in found.values(0)[0] and "label" not in found.values(1)[0]
    assert "rows whose gold_label is '-' have no label" in said


def test_one_column_is_not_enough_and_no_name_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it has one column, 'text', and text and label are needed") as raised:
        opened(Classify(), tmp_path / "a.csv", "text\na\nb\n")
    assert "column=" not in str(raised.value)


def test_many_columns_are_not_all_listed(tmp_path: Path) -> None:
    content = ",".join(f"c{number}" for number in range(10_000)) + "\n" + (",".join(["x"] * 10_000) + "\n") * 2
    with pytest.raises(InputError, match="9,990 more") as raised:
        opened(Classify(), tmp_path / "a.csv", content)
    assert len(str(raised.value)) < 1000
    with pytest.raises(InputError, match="'c9' and 9,990 more"):
        opened(Classify(), tmp_path / "a.csv", content, columns={"text": "none"})


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no rows"):
        opened(Classify(), tmp_path / "a.csv", "text,label\n", header=True)


@pytest.mark.parametrize("name", ["score", "similarity", "label", "target", "relatedness", "rating"])
def test_siamese_rows_have_the_scores_of_similarity(tmp_path: Path, name: str) -> None:
    content = f"sentence1,sentence2,{name}\na b,c d,4.75\ne f,g h,1\n"
    found, _ = opened(Siamese(), tmp_path / "a.csv", content)
    assert found.columns == {"text": "sentence1", "other": "sentence2", "score": name}


def test_siamese_rows_without_names(tmp_path: Path) -> None:
    content = "".join(f"news\t{number}\t{number / 4}\tsome text {number}\tsame text {number}\n" for number in range(9))
    found, _ = opened(Siamese(), tmp_path / "a.tsv", content)
    assert found.columns == {"text": "column4", "other": "column5", "score": "column3"}


def test_whole_numbers_stay_labels(tmp_path: Path) -> None:
    content = "sentence1,sentence2,label\na b,c d,1\ne f,g h,0\n"
    assert opened(Siamese(), tmp_path / "a.csv", content)[0].columns["label"] == "label"


def test_a_column_is_not_text_and_label_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\nx,y\n")
    with pytest.raises(SpecError, match="text and label cannot both be the column 'a'"):
        open_labelled(Classify(), [tmp_path / "a.csv"], {"text": "a", "label": "a"})


def test_a_second_text_that_the_model_does_not_read_is_reported() -> None:
    events: list[Event] = []
    rows = rows_of([{"text": "a", "other": "b", "label": "x"}], "rows")
    open_labelled(Classify(pair=False, labels=("x", "y")), rows, on_event=events.append)
    assert "rows: the column 'other' is not read: the model was trained without it" in [one.message for one in events]
    events.clear()
    open_labelled(Classify(pair=True, labels=("x", "y")), rows, on_event=events.append)
    assert not any("is not read" in one.message for one in events)


def test_what_is_piped_is_read_as_utf_8_whatever_training_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("很好\n".encode())))
    trained = Reading(encoding="gb18030")
    task = Classify(pair=False, labels=("x", "y"))
    found = open_labelled(task, ["-"], format="lines", targets=False, trained=trained, on_event=events.append)
    assert found.values(0)[0] == {"text": "很好"}
    assert any(one.kind == "warning" and "not as gb18030 as in training" in one.message for one in events)
