"""Every kind by its ending or its look; several files as one; real files with their known numbers of rows."""

import gzip
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pyarrow as pa
import pytest

from bertie.data.rows import RowError, open_rows
from bertie.data.rows.opening import fits_ending
from bertie.errors import InputError

Writer = Callable[[str, str | bytes], Path]

TABBED = "sentence\tlabel\na good film\t1\na bad film\t0\n"
TAGGED = "EU\tB-ORG\nsaid\tO\n\nPeter\tB-PER\n"
LINES = '{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n'
QUESTIONS = '{"version": "1.1", "data": [{"paragraphs": [{"context": "a", "qas": [{"question": "b?"}]}]}]}'


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.CSV", "sentence,label\na,1\n", ("sentence", "label")),
        ("a.tsv", TABBED, ("sentence", "label")),
        ("a.txt", TABBED, ("sentence", "label")),
        ("a.tsv", TAGGED, ("words", "tags")),
        ("a.txt", TAGGED.replace("\t", " "), ("words", "tags")),
        ("a.txt", "some words\nand others\n", ("text",)),
        ("a", "-DOCSTART- O\n\n" + TAGGED.replace("\t", " "), ("words", "tags")),
        ("a.ndjson", LINES, ("text", "label")),
        ("a.json", LINES, ("text", "label")),
        ("a.json", '[{"text": "a"}]', ("text",)),
        ("a.json", QUESTIONS, ("id", "title", "context", "question", "answers", "is_impossible")),
        ("a.tsv", TABBED.replace("a bad", "\na bad"), ("sentence", "label")),  # one blank line is no sentence's end
    ],
)
@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_the_kind_is_seen(write: Writer, name: str, content: str, columns: tuple[str, ...], packing: str) -> None:
    plain = content.encode()
    packed = {".gz": gzip.compress, ".zst": lambda data: pa.compress(data, "zstd", asbytes=True), "": bytes}[packing]
    rows = open_rows(write(name + packing, packed(plain)))
    assert rows.columns == columns
    assert any("unpacked to a temporary file" in notice for notice in rows.notices) == bool(packing)


def test_a_format_that_is_named_is_taken(write: Writer) -> None:
    assert open_rows(write("a.txt", "a,b\n1,2\n"), "csv").row(0).values == {"a": "1", "b": "2"}
    assert open_rows(write("a.tsv", TAGGED), "tsv", header=True).num_rows == 2


def test_a_guess_is_told(write: Writer) -> None:
    assert any("read as conll, by its content" in notice for notice in open_rows(write("a.tsv", TAGGED)).notices)


def test_several_files_are_one(write: Writer) -> None:
    first, second = write("a.csv", "text,label\na,1\nb,0\n"), write("b.csv", "label,text\n1,c\n")
    rows = open_rows([first, second])
    assert [row.values["text"] for row in rows] == ["a", "b", "c"]
    assert [row.where for row in rows] == [f"{first}:2", f"{first}:3", f"{second}:2"]


def test_objects_of_several_files_may_differ_in_fields(write: Writer) -> None:
    rows = open_rows([write("a.jsonl", '{"a": 1}'), write("b.jsonl", '{"b": 2}')])
    assert rows.columns == ("a", "b") and rows.row(1).values == {"b": 2}


@pytest.mark.parametrize(
    ("files", "format", "message"),
    [
        (
            {"a.csv": "text,label\na,1\n", "b.csv": "text,class\nb,0\n"},
            None,
            "b.csv: it has other columns ('text', 'class')",
        ),
        ({"a.csv": "text,label\na,1\n", "b.jsonl": LINES}, None, "b.jsonl: it is of another kind than"),
        ({"a.dat": "some words\nand others\n"}, None, "a.dat: neither its name nor its content"),
        ({"a.csv": b"\xff\xfea\0\x01"}, None, "a.csv:1: not utf-16: byte 0x01"),
        ({"a.csv": b"PK\x03\x04"}, None, "a.csv: this is a binary file (a zip file)"),
        ({"a.csv.gz": gzip.compress(b"a,b\n" * 999)[:-20]}, None, "the compressed data is broken or cut off"),
        ({"a.csv": "a\n"}, "xls", "the format 'xls' is not known; known: csv, tsv"),
    ],
)
def test_mistakes_are_named(write: Writer, files: dict[str, str | bytes], format: str | None, message: str) -> None:
    paths = [write(name, content) for name, content in files.items()]
    with pytest.raises(InputError) as raised:
        open_rows(paths, format)
    assert message in str(raised.value)


def test_paths_that_lead_nowhere(tmp_path: Path, write: Writer) -> None:
    for name in ("none.csv", "none.parquet", "none.txt"):
        with pytest.raises(InputError, match="there is no such file"):
            open_rows([tmp_path / name])
    with pytest.raises(InputError, match="no file is given"):
        open_rows([])
    path = write("a.csv", "a,b\n")
    with pytest.raises(InputError, match=r"a\.csv: the file is given twice"):
        open_rows([path, path])
    with pytest.raises(InputError, match="/dev/zero: this is a device, not a file"):
        open_rows(["/dev/zero"], "csv")


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    writer = Thread(target=(tmp_path / "pipe.csv").write_text, args=("text,label\na,1\nb,0\n",))
    writer.start()
    rows = open_rows([tmp_path / "pipe.csv"])
    writer.join()
    assert [row.values["text"] for row in rows] == ["a", "b"] == [row.values["text"] for row in rows]


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"a": 1}\n')))
    assert open_rows("-").row(0) == ({"a": 1}, "standard input:1")


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_files_in_other_encodings(write: Writer, encoding: str, packing: str) -> None:
    content = 'label,review\n1,房间很好\n0,"很差，\n真的"\n'.encode(encoding)
    path = write(f"a.csv{packing}", gzip.compress(content) if packing else content)
    rows = open_rows(path, encoding=encoding)
    assert [row.values["review"] for row in rows] == ["房间很好", "很差，\n真的"]


def test_a_byte_order_mark_shows_the_encoding(write: Writer) -> None:
    rows = open_rows(write("a.tsv", "text\tlabel\nä\t1\n".encode("utf-16")))
    assert rows.row(0).values == {"text": "ä", "label": "1"}
    assert any("read as UTF-16, by its byte-order mark" in notice for notice in rows.notices)


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        ("a,b\nx,caf\xe9\n".encode("latin-1"), None, ":2: not UTF-8: byte 0xE9 at offset 9 of the text; give its `enc"),
        ("a,b\nx,房间很好\n".encode("gb18030"), None, "give its `encoding`, such as gb18030"),
        (b"a,b\nx,\xff\xff\n", "gb18030", ":2: not gb18030: byte 0xFF; give the `encoding` that the file has"),
        ("a,b\nx,1\n\ufeffy,2\n", None, ":3: the line starts with a byte-order mark; remove it"),
    ],
)
def test_bytes_that_do_not_fit_are_named(
    write: Writer, content: str | bytes, encoding: str | None, message: str
) -> None:
    with pytest.raises(InputError) as raised:
        list(open_rows(write("a.csv", content), encoding=encoding))
    assert f"a.csv{message}" in str(raised.value) or message in str(raised.value)


def test_an_encoding_that_looks_wrong_is_reported(write: Writer) -> None:
    rows = open_rows(write("a.csv", "text,label\nä,1\nö,0\n"), encoding="latin-1")
    assert any("but it looks like UTF-8" in notice for notice in rows.notices)


def test_semicolons_separate_cells_too(write: Writer) -> None:
    rows = open_rows(write("a.csv", 'score;text ;label\r\n4,5;"gut; ja";pos\r\n1,5;schlecht;neg\r\n'))
    assert rows.columns == ("score", "text", "label")
    assert rows.row(0).values == {"score": "4,5", "text": "gut; ja", "label": "pos"}
    assert any("cells are separated by ';'" in notice for notice in rows.notices)
    assert open_rows(write("b.csv", "text,label\na;b,1\n")).columns == ("text", "label")


def test_words_in_columns_without_tags_are_a_suggestion(write: Writer) -> None:
    content = "Paris is big\n\nRome is old\n\nBerlin is new\n"
    rows = open_rows(write("a.txt", content))
    assert rows.columns == ("text",) and rows.num_rows == 3
    assert any("give `format=conll`" in notice for notice in rows.notices)
    with pytest.raises(InputError, match="if these are words in columns, give `format=conll`"):
        open_rows(write("a.words", content))


def test_an_unknown_ending_with_tags_is_conll(write: Writer) -> None:
    rows = open_rows(write("train.ner", "New B-LOC\nYork I-LOC\n\nhe O\n"))
    assert rows.columns == ("words", "tags") and any("read as conll" in notice for notice in rows.notices)


def test_a_stray_mark_in_conll_is_named(write: Writer) -> None:
    rows = open_rows(write("a.conll", "New B-LOC\n\nhe O\n\ufeff\nshe O\n"))
    with pytest.raises(InputError, match=r"a\.conll:4: the line starts with a byte-order mark"):
        rows.row(1)


def test_which_formats_an_ending_may_have() -> None:
    assert fits_ending(Path("a.csv"), "tsv") and fits_ending(Path("a.json.gz"), "squad")
    assert fits_ending(Path("a.txt"), "conll") and fits_ending(Path("a"), "csv")
    assert not fits_ending(Path("a.jsonl"), "tsv") and not fits_ending(Path("a.tsv"), "label-text")


def test_a_file_that_became_shorter_is_no_row(write: Writer) -> None:
    path = write("a.csv", "text,label\naaa,1\nbbb,0\n")
    rows = open_rows([path])
    path.write_text("text,label\n")
    with pytest.raises(InputError, match="became shorter"):
        rows.row(1)


# --- real files


@pytest.mark.parametrize(
    ("path", "num_rows", "columns"),
    [
        ("sst2/train_full.tsv", 67_349, ("sentence", "label")),
        ("sst2/dev.tsv", 872, ("sentence", "label")),
        ("sst2/test-labeled.tsv", 1_821, ("sentence", "label")),
        ("mrpc/msr_paraphrase_train.txt", 4_076, ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")),
        ("mrpc/msr_paraphrase_test.txt", 1_725, ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")),
        ("stsb/sts-train.tsv", 5_749, tuple(f"column{number}" for number in range(1, 10))),
        ("stsb/sts-dev.tsv", 1_500, tuple(f"column{number}" for number in range(1, 10))),
        ("stsb/sts-test.tsv", 1_379, tuple(f"column{number}" for number in range(1, 10))),
        ("chnsenticorp/ChnSentiCorp_htl_all.csv", 7_766, ("label", "review")),
        ("conll2003/train.txt", 14_041, ("words", "column2", "column3", "tags")),
        ("conll2003/dev.txt", 3_250, ("words", "column2", "column3", "tags")),
        ("conll2003/test.txt", 3_453, ("words", "column2", "column3", "tags")),
        ("msra_ner/train.txt", 20_000, ("words", "tags")),
        ("msra_ner/dev.txt", 2_000, ("words", "tags")),
        ("squad/train.json", 7_921, ("id", "title", "context", "question", "answers", "is_impossible")),
        ("squad/dev.json", 1_633, ("id", "title", "context", "question", "answers", "is_impossible")),
        ("cmrc2018/cmrc2018_dev.json", 3_219, ("id", "title", "context", "question", "answers", "is_impossible")),
        ("cmrc2018/cmrc2018_trial.json", 1_002, ("id", "title", "context", "question", "answers", "is_impossible")),
        ("cmn_eng/cmn.txt", 21_116, ("column1", "column2")),
        pytest.param("en_wiki.jsonl.gz", 4_544, ("id", "title", "text"), marks=pytest.mark.slow),
    ],
)
def test_real_files_have_their_rows(shared: Path, path: str, num_rows: int, columns: tuple[str, ...]) -> None:
    rows = open_rows([shared / "data" / path])
    assert rows.num_rows == num_rows
    assert rows.columns == columns
    wrong = []
    for number in range(0, num_rows, max(1, num_rows // 2000)):
        try:
            rows.row(number)
        except RowError as error:
            wrong.append(str(error))
    assert wrong == []


def test_real_rows_keep_their_quotes(shared: Path) -> None:
    first = open_rows([shared / "data/mrpc/msr_paraphrase_train.txt"]).row(0).values
    assert '"the witness"' in first["#1 String"] and first["Quality"] == "1"
    review = open_rows([shared / "data/chnsenticorp/ChnSentiCorp_htl_all.csv"]).row(0).values["review"]
    assert '如果是"蔡陆线"的话' in review


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="only Linux has such files")
def test_a_file_that_cannot_be_read_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"/proc/self/mem.*reading failed"):
        open_rows("/proc/self/mem")
