"""Texts out of files: every format gives the same texts; every mistake is one sentence with file, line and way out."""

import csv
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.errors import InputError
from bertie.reporting.events import Event
from bertie.text.reading.documents import slices
from bertie.text.reading.files import TextReader, TextSource, read_texts

TEXTS = ["plain", "", "  spaces kept  ", "你好，世界", "naïve 🙂", "a\u2028b\u0085c\x0bd", 'say "hi", twice']


def texts_of(reader: TextReader) -> list[str]:
    with reader:
        return [record.text for record in reader]


def message(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        texts_of(read_texts(path, **options))  # type: ignore[arg-type]
    return str(caught.value)


def write_csv(texts: list[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerows([["id", "text"], *([str(number), text] for number, text in enumerate(texts))])
    return buffer.getvalue().encode()


WRITERS: dict[str, Callable[[list[str]], bytes]] = {
    "txt": lambda texts: "".join(f"{text}\n" for text in texts).encode(),
    "jsonl": lambda texts: "".join(json.dumps({"text": text}) + "\n" for text in texts).encode(),
    "csv": write_csv,
    "tsv": lambda texts: "".join(f"{cell}\n" for cell in ["id\ttext", *(f"7\t{text}" for text in texts)]).encode(),
}


def write_parquet(path: Path, columns: dict[str, pa.Array]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_every_line_format_gives_the_same_texts(tmp_path: Path, ending: str, packing: str) -> None:
    path = tmp_path / f"texts.{ending.upper()}{packing}"
    data = WRITERS[ending](TEXTS)
    if packing == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(data)
    else:
        path.write_bytes(gzip.compress(data) if packing else data)
    assert texts_of(read_texts(path)) == TEXTS


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_gives_the_same_texts_and_counts_rows(tmp_path: Path, kind: pa.DataType) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"id": pa.array(range(700)), "text": pa.array(TEXTS * 100).cast(kind)})
    reader = read_texts(path)
    records = list(reader)
    assert [record.text for record in records] == TEXTS * 100
    assert records[300].where == f"{path}:301"
    assert reader.fraction == 1.0


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
def test_json_and_csv_carry_any_text(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    for ending in ("jsonl", "csv"):
        (folder / f"a.{ending}").write_bytes(WRITERS[ending](texts))
        assert texts_of(read_texts(folder / f"a.{ending}")) == texts


def test_byte_order_mark_and_windows_line_ends_are_taken_off(tmp_path: Path) -> None:
    for ending, data in {
        "txt": b"one\r\ntwo\r\n",
        "csv": b"text\r\none\r\ntwo\r\n",
        "tsv": b"text\r\none\r\ntwo",
    }.items():
        path = tmp_path / f"a.{ending}"
        path.write_bytes(b"\xef\xbb\xbf" + data)
        assert texts_of(read_texts(path)) == ["one", "two"]


def test_a_mark_or_return_inside_a_text_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("one\n\ufefftwo\rthree\n".encode())
    assert texts_of(read_texts(tmp_path / "a.txt")) == ["one", "\ufefftwo\rthree"]


def test_csv_keeps_line_ends_in_cells_and_names_the_first_line_of_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'id,text\r\n1,"a\r\nb"\r\n2,c\r\n')
    records = list(read_texts(tmp_path / "a.csv"))
    assert [(record.text, record.line) for record in records] == [("a\r\nb", 2), ("c", 4)]


def test_standard_input_is_lines_or_a_named_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    reader = read_texts("-")
    assert [record.where for record in reader] == ["standard input:1", "standard input:2"]
    assert reader.fraction is None
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"a": "one"}\n')))
    assert texts_of(read_texts("-", format="jsonl", column="a")) == ["one"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv", "a.txt.gz"])
def test_an_empty_file_has_no_texts(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    assert texts_of(read_texts(tmp_path / name)) == []


@pytest.mark.parametrize("name", ["a.txt", "a.parquet"])
def test_the_fraction_read_grows_to_one(tmp_path: Path, name: str) -> None:
    texts = [f"text {number} " + "x" * 90 for number in range(5000)]
    path = tmp_path / name
    if name == "a.txt":
        path.write_bytes(WRITERS["txt"](texts))
    else:
        write_parquet(path, {"text": pa.array(texts)})
    reader = read_texts(path)
    seen = [reader.fraction or 0.0 for _ in reader]
    assert seen == sorted(seen)
    assert seen[0] < 0.2 and seen[2500] == pytest.approx(0.5, abs=0.15) and seen[-1] == 1.0


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.txt.gz", "a.parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str) -> None:
    def peak(count: int) -> int:
        path, texts = tmp_path / name, [f"text {number} " + "x" * 200 for number in range(count)]
        if name == "a.parquet":
            write_parquet(path, {"text": pa.array(texts)})
        else:
            data = WRITERS[name.split(".")[1]](texts)
            path.write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
        del texts
        tracemalloc.start()
        arrow = pa.total_allocated_bytes()
        highest = 0
        for record in read_texts(path):
            if record.line % 256 == 0:
                highest = max(highest, pa.total_allocated_bytes() - arrow)
        traced = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return traced + highest

    assert peak(60_000) < 1.5 * peak(15_000)  # the larger file has 13 MB


def test_a_column_is_guessed_and_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,review\n1,fine\n")
    reader = read_texts(tmp_path / "a.csv")
    assert [record.text for record in reader] == ["fine"]
    assert reader.notices == [f"{tmp_path}/a.csv: reading the column 'review' (of 'label', 'review')"]
    (tmp_path / "b.csv").write_text("label,text\n1,fine\n")
    reader = read_texts(tmp_path / "b.csv")
    assert [record.text for record in reader] == ["fine"] and reader.notices == []


def test_blank_lines_of_jsonl_are_counted_and_of_csv_may_only_end_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n\n \n')
    (tmp_path / "a.csv").write_text("id,text\n1,one\n\n\n")
    assert texts_of(read_texts(tmp_path / "a.jsonl")) == texts_of(read_texts(tmp_path / "a.csv")) == ["one"]
    (tmp_path / "b.jsonl").write_text('{"text": "one"}\n\n{"text": "two"}\n')
    reader = read_texts(tmp_path / "b.jsonl")
    assert texts_of(reader) == ["one", "two"]
    assert reader.notices == [f"{tmp_path / 'b.jsonl'}: 1 blank line is left out"]
    (tmp_path / "b.csv").write_text("id,text\n1,one\n\n2,two\n")
    assert "b.csv:3: the row is blank" in message(tmp_path / "b.csv")
    (tmp_path / "c.tsv").write_text("text\n\none\n\n")
    assert texts_of(read_texts(tmp_path / "c.tsv")) == ["", "one", ""]


def test_cells_over_the_limit_of_the_csv_module_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n" + "x" * 200_000 + "\n")
    assert [len(text) for text in texts_of(read_texts(tmp_path / "a.csv"))] == [200_000]


def test_quotes_of_a_tsv_are_kept_and_told_once(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('id\ttext\n1\tone "two"\n2\t"three"\n3\t"four"\n4\t"\n')
    reader = read_texts(tmp_path / "a.tsv")
    assert texts_of(reader) == ['one "two"', '"three"', '"four"', '"']
    assert reader.notices == [f"{tmp_path / 'a.tsv'}:3: the text is in quotes; in TSV they are kept as part of it"]
    events: list[Event] = []
    slices([tmp_path / "a.tsv"], on_event=events.append)
    assert [event.message for event in events] == reader.notices


BROKEN: list[tuple[str, bytes, str]] = [
    ("a.doc", b"x", "a.doc: the file ending '.doc' is not known; known: txt, jsonl, csv, tsv, parquet"),
    ("a", b"x", "a: the file ending '' is not known"),
    ("a.txt", b"one\ncaf\xe9\n", "a.txt:2: not UTF-8: byte 0xE9 at offset 7 of the text; give its `encoding`"),
    ("a.txt", b"one\n\xed\xa0\x80\n", "a.txt:2: not UTF-8: byte 0xED at offset 4"),
    ("a.jsonl", b'{"text": "one"}\n{"text": "\xff"}\n', "a.jsonl:2: not UTF-8: byte 0xFF at offset 26"),
    ("a.txt", "one".encode("utf-16") + b"\1", "a.txt:1: not utf-16: byte 0x01; give the `encoding`"),
    ("a.jsonl", '{"text": "a"}\n\ufeff{"text": "b"}\n'.encode(), "a.jsonl:2: the line starts with a byte-order mark"),
    ("a.txt", b"\x01\x00\x02", "a.txt: this is a binary file, not text (it has NUL bytes)"),
    ("a.txt", b"\x89PNG\r\n\x1a\n", "a.txt: this is a binary file (a PNG image), not text"),
    ("a.txt", gzip.compress(b"one"), "a.txt: this is a binary file (a gzip file), not text"),
    ("a.txt", b"x\n" * 40_000 + b"a\0b\n", "a.txt:40001: this is a binary file, not text (the line has a NUL byte)"),
    ("a.txt.gz", b"plain", "a.txt.gz:1: the compressed data is broken or cut off ("),
    ("a.txt.gz", gzip.compress(b"one\n" * 999)[:-9], "a.txt.gz:1: the compressed data is broken or cut off"),
    ("a.txt.zst", b"plain", "a.txt.zst:1: the compressed data is broken or cut off"),
    ("a.jsonl", b'{"text": "one"}\n{"text": \n', "a.jsonl:2: not valid JSON (Expecting value, column 9)"),
    (
        "a.jsonl",
        b'[\n{"text": "one"}\n]\n',
        "a.jsonl:1: not valid JSON (Expecting value, column 2); for a file that is",
    ),
    ("a.jsonl", b"[" * 100_000, "a.jsonl:1: not valid JSON"),
    ("a.jsonl", b'"one"\n', "a.jsonl:1: the line is a text, not an object"),
    (
        "a.jsonl",
        b'{"id": 1, "body": "b"}\n',
        "there is no field 'text'; choose one as `column`; the line's fields are: 'id', 'body'",
    ),
    ("a.jsonl", b'{"text": 5}\n', "a.jsonl:1: 'text' is a number, not a text"),
    ("a.jsonl", b'{"text": true}\n', "a.jsonl:1: 'text' is true or false, not a text"),
    ("a.jsonl", b'{"text": ["a"]}\n', "a.jsonl:1: 'text' is a list, not a text"),
    ("a.jsonl", b'{"text": null}\n', "a.jsonl:1: 'text' is null; remove the line, or count it as an empty text"),
    ("a.jsonl", b'{"text": "\\ud83d"}\n', "a.jsonl:1: 'text' has half a surrogate pair"),
    ("a.csv", b"id,text\n1,one\n2,two,three\n", "a.csv:3: the row has 3 cells, the header 2"),
    ("a.tsv", b'id\ttext\n1\t"one\ntwo"\n', "the header 2; every row must have the header's cells; in TSV a cell"),
    ("a.csv", b"id,text\n1\n", "a.csv:2: the row has 1 cells, the header 2"),
    ("a.csv", b'id,text\n1,"one" more\n', "a.csv:2: not valid CSV (',' expected after '\"')"),
    ("a.csv", b'id,text\n1,"one\n2,two\n', "a.csv:2: not valid CSV (unexpected end of data)"),
    (
        "a.csv",
        b"id,label\n1,one\n",
        "it is not clear which column has the text; choose one as `column`; its columns are: 'id', 'label'",
    ),
    ("a.csv", b"text,text\n1,one\n", "the column 'text' is there 2 times"),
    ("a.parquet", b"", "a.parquet: not a Parquet file (it is empty, or a pipe)"),
    ("a.parquet", b"text\none\n" * 9, "a.parquet: not a Parquet file, or a broken one"),
    ("a.parquet.gz", b"x", "a.parquet.gz: Parquet is read from a plain file only"),
]


@pytest.mark.parametrize(("name", "data", "expected"), BROKEN, ids=range(len(BROKEN)))
def test_a_mistake_in_the_file_is_one_sentence(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert expected in message(tmp_path / name)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for name in ("none.txt", "none"):
        assert message(tmp_path / name) == f"{tmp_path}/{name}: there is no such file; check the path"
    assert message(tmp_path) == f"{tmp_path}: this is a folder, not a file; give one file"


def test_named_field_and_format_are_checked(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,one\n")
    assert "there is no column 'body'; its columns are: 'id', 'text'" in message(tmp_path / "a.csv", column="body")
    assert "the format 'xml' is not known" in message(tmp_path / "a.csv", format="xml")
    assert texts_of(read_texts(tmp_path / "a.csv", format="txt")) == ["id,text", "1,one"]


def test_mistakes_in_parquet(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"id": pa.array([1]), "n": pa.array([2])})
    assert "there is no column 'text'; its columns are: 'id', 'n'" in message(path, column="text")
    assert "a.parquet: the column 'id' holds int64, not text" in message(path, column="id")
    path = write_parquet(tmp_path / "b.parquet", {"text": pa.array(["one", None])})
    assert "b.parquet:2: 'text' is null" in message(path)
    assert texts_of(read_texts(path, null_as_empty=True)) == ["one", ""]
    path = write_parquet(tmp_path / "c.parquet", {"text": pa.array(["one", "x" * 50])})
    assert "c.parquet:2: the text is longer than the limit of 49 bytes" in message(path, max_line_bytes=49)
    path = write_parquet(tmp_path / "d.parquet", {"text": pa.array([b"one", b"\xff"]).view(pa.string())})
    assert "d.parquet:2: 'text' is not UTF-8" in message(path)


def test_null_counts_as_empty_when_asked(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": null}\n{"text": "one"}\n')
    assert texts_of(read_texts(tmp_path / "a.jsonl", null_as_empty=True)) == ["", "one"]


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_line_of_50_mb_is_named_and_not_read(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"a.txt{packing}"
    with gzip.open(path, "wb", 1) if packing else path.open("wb") as file:
        file.write(b"short\n")
        for _ in range(50):
            file.write(b"x" * 1_000_000)
    tracemalloc.start()
    said = message(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert said == (
        f"{path}:2: the line is longer than the limit of 10,000,000 bytes; "
        "split it, or raise the limit with `max_line_bytes`"
    )
    assert peak < 25_000_000
    assert [len(text) for text in texts_of(read_texts(path, max_line_bytes=60_000_000))] == [5, 50_000_000]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_the_limit_counts_the_line_without_its_end(tmp_path: Path, end: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * 100 + end)
    assert texts_of(read_texts(tmp_path / "a.txt", max_line_bytes=100)) == ["x" * 100]
    assert "a.txt:1: the line is longer than the limit of 99 bytes" in message(tmp_path / "a.txt", max_line_bytes=99)


def test_an_unclosed_quote_does_not_gather_the_whole_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\n1,one\n2,"two\n' + "3,three\n" * 200_000)
    said = message(tmp_path / "a.csv", max_line_bytes=1_000_000)
    assert "a.csv:3: the row (is a quote not closed?) is longer than the limit of 1,000,000 bytes" in said


def test_a_single_column_without_a_name_does_not_lose_its_first_text(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("Every student is clever.\nAnother one.\n")
    with pytest.raises(InputError, match=r"looks like a text.*format=txt"), TextSource(file).read() as reader:
        list(reader)
