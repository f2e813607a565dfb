"""The labelled sets in one form, whatever their files look like."""

import json
from pathlib import Path

import pytest
from benchmarks.labelled_sets import SETS, Row, drawn, read_rows, read_set, write_rows

ASKED = {"id": "1", "question": "b?", "answers": [{"text": "b", "answer_start": 2}]}
SQUAD = {"data": [{"title": "T", "paragraphs": [{"context": "A b.", "qas": [ASKED]}]}]}
QUESTION = {**ASKED, "title": "T", "context": "A b."}
STSB = "news\ta\t2012\t0001\t4.200\tA plane.\tAn air plane.\nnews\ta\t2012\t0002\t0.000\tA cat.\tA dog.\n"
MRPC = (
    "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    '1\t7\t8\tHe said "yes.\tYes, he said.\r\n0\t9\t8\tNo.\tYes.\r\n'
)
CASES = {
    "sst2": ("sentence\tlabel\ngood film \t1\nbad film \t0\n", {"text": "good film ", "label": "1"}),
    "conll": (
        "-DOCSTART- -X- -X- O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\nIt PRP I-NP O\n",
        {"words": ["EU", "rejects"], "tags": ["B-ORG", "O"]},
    ),
    "stsb": (STSB, {"text": "A plane.", "other": "An air plane.", "score": "4.200"}),
    "mrpc": (MRPC, {"text": 'He said "yes.', "other": "Yes, he said.", "label": "1"}),
    "squad": (json.dumps(SQUAD), QUESTION),
    "chnsenticorp": ('label,review\n1,"好,很好"\n0,差\n', {"text": "好,很好", "label": "1"}),
    "msra": ("前\tO\n海\tB-LOC\n\n不\tO\n", {"words": ["前", "海"], "tags": ["O", "B-LOC"]}),
    "cmrc": (json.dumps(SQUAD), QUESTION),
}


@pytest.mark.parametrize("name", list(SETS))
def test_every_set_is_read(name: str, tmp_path: Path) -> None:
    text, first = CASES[name]
    path = tmp_path / Path(SETS[name].files["train"]).name
    path.write_text(text, "utf-8", newline="")
    assert SETS[name].read(path)[0] == first


def test_fewer_rows_are_the_first_of_more() -> None:
    rows = [{"label": str(number)} for number in range(50)]
    assert drawn(rows) == drawn(rows)
    assert drawn(rows) != rows and sorted(row["label"] for row in drawn(rows)) == sorted(row["label"] for row in rows)


def test_a_set_without_a_test_gives_some_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text("label,review\n" + "".join(f"{number % 2},review {number}\n" for number in range(10)), "utf-8")
    parts = read_set("chnsenticorp", {"train": path})
    texts = {part: {row["text"] for row in rows} for part, rows in parts.items()}
    assert (len(texts["train"]), len(texts["test"])) == (5, 5)
    assert not texts["train"] & texts["test"]


def test_rows_come_back_as_they_went(tmp_path: Path) -> None:
    rows: list[Row] = [{"text": "a line\u2028 separator\nand a break", "label": "1"}, {"words": ["的"], "tags": ["O"]}]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl") == rows


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SETS))
def test_the_real_files_have_that_form(name: str, shared: Path) -> None:
    wanted = SETS[name]
    for file in wanted.files.values():
        rows = wanted.read(shared / "data" / file)
        assert len(rows) > 500
        assert all(row.keys() == wanted.columns.keys() for row in rows)
