import gzip
import io
import json
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path, PurePath
from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.errors import InputError
from bertie.reporting.events import Event
from bertie.text.reading.document_parts import Document, Part
from bertie.text.reading.documents import DocumentOptions, Slice, Texts, list_files, slices
from bertie.text.reading.slicing import parts_of

SMALL = DocumentOptions(slice_bytes=64)


def texts(found: list[Slice]) -> list[str]:
    return [document.text for each in found for document in each.read()]


def documents(found: list[Slice]) -> list[Document]:
    return [document for each in found for document in each.read()]


def pack(content: bytes, ending: str) -> bytes:
    if ending == ".gz":
        return gzip.compress(content)
    return pa.compress(content, codec="zstd", asbytes=True) if ending == ".zst" else content


def wiki(names: list[str]) -> str:
    return "".join(
        f'<doc id="{i}" url="https://example.org/?a={i}" title="{name}">\n{name}\n\nText of {i}.\nMore.\n\n</doc>\n'
        for i, name in enumerate(names)
    )


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_slices_cover_a_file_once_in_any_order(tmp_path: Path, ending: str) -> None:
    rows = [{"id": i, "title": f"t{i}", "text": f"text {i} 中文\nline"} for i in range(40)]
    path = tmp_path / f"a.jsonl{ending}"
    path.write_bytes(pack("".join(json.dumps(row) + "\n" for row in rows).encode(), ending))
    found = slices([path], SMALL)
    assert len(found) > 5
    assert texts(found) == [row["text"] for row in rows]
    assert [text for each in reversed(found) for text in reversed(texts([each]))] == [r["text"] for r in rows[::-1]]
    last = documents(found)[-1]
    assert last == Document("text 39 中文\nline", "t39", f"{path}:40")


def test_two_compressed_readers_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\n\n" % i for i in range(1000))))
    found = slices([path], DocumentOptions(slice_bytes=1000))
    together = list(zip(found[0].read(), found[1].read(), strict=False))
    assert [a.text for a, _ in together] == [str(i) for i in range(len(together))]
    abandoned = found[2].read()
    next(abandoned)
    del abandoned
    assert texts(found) == [str(i) for i in range(1000)]


def test_a_slice_is_a_plain_value_with_a_digest_of_its_content(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n\ntwo\n\nthree\n", encoding="utf-8")
    first = slices([path], DocumentOptions(slice_bytes=1))
    assert Slice.from_json(first[1].to_json()) == first[1] == pickle.loads(pickle.dumps(first[1]))
    again = slices([path], DocumentOptions(slice_bytes=1))
    assert [each.digest for each in first] == [each.digest for each in again]
    path.write_text("one\n\ntWo\n\nthree\n", encoding="utf-8")
    changed = slices([path], DocumentOptions(slice_bytes=1))
    assert [a.digest == b.digest for a, b in zip(first, changed, strict=True)] == [True, False, True]


@pytest.mark.parametrize(
    ("boundary", "expected"),
    [
        ("blank-line", [("one\nmore", 1), ("two", 4), ("three", 7)]),
        ("line", [("one", 1), ("more", 2), ("", 3), ("two", 4), ("  ", 5), ("", 6), ("three", 7)]),
        ("file", [("one\nmore\n\ntwo\r\n  \n\nthree", 1)]),
    ],
)
def test_what_ends_a_document_in_a_text_file(tmp_path: Path, boundary: str, expected: list[tuple[str, int]]) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\nmore\n\ntwo\r\n  \n\nthree")
    for size in (1, 5, 1000):
        found = documents(slices([path], DocumentOptions.parse({"boundary": boundary, "slice_bytes": size})))
        assert [(document.text, document.where) for document in found] == [(t, f"{path}:{n}") for t, n in expected]


@given(
    st.lists(st.sampled_from(["a", "中文 b", "", " ", "\r", "c" * 30, "\t\u3000", "</doc>"]), max_size=30),
    st.integers(1, 60),
    st.booleans(),
)
def test_where_a_file_is_cut_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], size: int, ended: bool
) -> None:
    path = tmp_path_factory.mktemp("cut") / "a.txt"
    path.write_bytes(("\n".join(lines) + ("\n" if ended else "")).encode())
    whole = documents(slices([path]))
    assert documents(slices([path], DocumentOptions(slice_bytes=size))) == whole


def test_wikiextractor_files_without_an_ending(tmp_path: Path) -> None:
    (tmp_path / "AA").mkdir()
    (tmp_path / "AA" / "wiki_00").write_text(wiki(["A &amp; B", "C"]), encoding="utf-8")
    (tmp_path / "AA" / "wiki_01.gz").write_bytes(gzip.compress(wiki(["D"]).encode()))
    found = documents(slices([tmp_path], SMALL))
    assert [document.name for document in found] == ["A & B", "C", "D"]
    assert found[1].text == "C\n\nText of 1.\nMore.\n\n"
    assert found[1].where.endswith("wiki_00:8")


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_tables(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    values = [f"text {i}" for i in range(30)]
    if ending == "parquet":
        pq.write_table(pa.table({"n": list(range(30)), "review": values}), path, row_group_size=4)
    else:
        between = "," if ending == "csv" else "\t"
        rows = [f"{i}{between}{value}" for i, value in enumerate(values)]
        path.write_text("\n".join([f"n{between}review", *rows]), encoding="utf-8")
    events: list[Event] = []
    found = slices([path], SMALL, on_event=events.append)
    assert texts(found) == values
    assert "reading the column 'review'" in events[0].message
    assert (len(found) > 1) == (ending == "parquet")
    assert documents(found)[-1].where == f"{path}:{30 if ending == 'parquet' else 31}"


def test_small_files_share_a_slice_and_keep_their_order(tmp_path: Path) -> None:
    for i in range(30):
        (tmp_path / f"{i:02}.txt").write_text(f"text {i}\n", encoding="utf-8")
    found = slices([tmp_path], SMALL)
    assert 2 < len(found) < 10
    assert texts(found) == [f"text {i}" for i in range(30)]


def test_folders_globs_and_what_is_left_out(tmp_path: Path) -> None:
    for name in ("b/x.txt", "a.jsonl", "a.pdf", ".hidden/x.txt", "b/.x.txt", "b/README"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}", encoding="utf-8")
    notices: list[str] = []
    assert list_files([tmp_path], notices) == [tmp_path / "a.jsonl", tmp_path / "b/x.txt"]
    assert notices == [f"{tmp_path}: 2 files of unknown format are left out (a.pdf, b/README)"]
    assert list_files([str(tmp_path / "**/*.txt")]) == [tmp_path / "b/x.txt"]


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def test_what_is_piped_is_copied_anew_and_a_terminal_pipes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(stdin: io.BytesIO) -> list[tuple[str, str]]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
        return [(found.text, found.where) for found in documents(slices(["-"], spool=tmp_path / "spool"))]

    first = [("one", "standard input:1"), ("two", "standard input:3")]
    assert read(io.BytesIO(b"one\n\ntwo\n")) == first
    assert read(Terminal(b"typed\n")) == first
    assert read(io.BytesIO(b"three\n")) == [("three", "standard input:1")]
    assert read(io.BytesIO()) == []


def test_standard_input_needs_a_place_and_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"one\n")))
    with pytest.raises(InputError, match="standard input"):
        slices(["-"])
    with pytest.raises(InputError, match="standard input: it is given twice"):
        slices(["-", "-"], spool=tmp_path)


@pytest.mark.parametrize("name", ["-", "my file.txt", "a.txt.gz"])
def test_the_encoding_that_is_suggested_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    content = "caf\xe9\n".encode("latin-1")
    path = tmp_path / name
    if name != "-":
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    def read(encoding: str) -> list[Document]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        sources = ["-" if name == "-" else path]
        return documents(slices(sources, DocumentOptions(encoding=encoding), spool=tmp_path / "spool"))

    with pytest.raises(InputError, match=r":1: not UTF-8: byte 0xE9 .* give its `encoding`, such as latin-1"):
        read("utf-8")
    (found,) = read("latin-1")
    assert found.text == "café" and found.where == f"{'standard input' if name == '-' else path}:1"


def test_an_encoding_changes_no_slice(tmp_path: Path) -> None:
    """A build that was started before this was an option can be continued."""
    assert "encoding" not in DocumentOptions(encoding="gb18030").model_dump()


def test_a_pipe_is_copied_before_it_is_cut(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=(tmp_path / "pipe").write_text, args=("one\n\ntwo\n",))
    writer.start()
    found = slices([tmp_path / "pipe"], spool=tmp_path / "spool")
    writer.join()
    assert [one.text for one in documents(found)] == ["one", "two"]
    assert found[0].where == f"{tmp_path / 'pipe'}:1"


def test_utf_16_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,text\n1,ä\n2,ö\n".encode("utf-16"))
    events: list[Event] = []
    found = slices([tmp_path / "a.csv"], spool=tmp_path / "spool", on_event=events.append)
    assert [one.text for one in documents(found)] == ["ä", "ö"]
    assert [event.message for event in events] == [f"{tmp_path / 'a.csv'}: read as UTF-16, by its byte-order mark"]


def test_blank_lines_of_jsonl_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('\n{"text": "a"}\n\n \t\n{"text": "b"}\n\n')
    events: list[Event] = []
    found = slices([tmp_path / "a.jsonl"], on_event=events.append)
    assert [one.text for one in documents(found)] == ["a", "b"]
    assert [event.message for event in events] == [f"{tmp_path / 'a.jsonl'}: 4 blank lines are left out"]


@pytest.mark.parametrize("source", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_file(source: str) -> None:
    with pytest.raises(InputError, match=f"{source}: this is a device, not a file"):
        slices([source])


def write_bad(content: bytes, name: str) -> Callable[[Path], list[str | Path]]:
    def write(folder: Path) -> list[str | Path]:
        (folder / name).write_bytes(content)
        return [folder / name]

    return write


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (write_bad(b'{"text": "a"}\n' * 9 + b'{"text": \n', "a.jsonl"), "a.jsonl:10: not valid JSON"),
        (write_bad(b'{"text": "a"}\n' * 9 + b'{"text": 3}\n', "a.jsonl"), "a.jsonl:10: 'text' is a number"),
        (write_bad(b'{"a": ""}\n', "a.jsonl"), "a.jsonl:1: there is no field 'text'"),
        (write_bad(b"ok\n\n" * 30 + b"caf\xe9\n", "a.txt"), "a.txt:61: not UTF-8: byte 0xE9 at offset 123"),
        (write_bad(b"a" * 2000, "a.txt"), "a.txt:1: the line is longer than the limit of 1,000 bytes"),
        (write_bad(b"ok\n\n" * 30 + b"a" * 2000, "a.txt"), "a.txt:61: the line is longer than the limit of 1,000"),
        (write_bad(gzip.compress(b"abc\n\n" * 999)[:-20], "a.txt.gz"), "broken or cut off"),
        (write_bad(b"\x89PNG....", "a.txt"), "a PNG image"),
        (write_bad(b"x", "a.docx"), "the file ending '.docx' is not known"),
        (write_bad(wiki(["A"]).encode() + b"stray\n", "a.txt"), "a.txt:8: there is text outside"),
        (write_bad(wiki(["A"]).encode()[:-8], "a.txt"), "a.txt:1: the document is not closed"),
        (write_bad(b"not parquet", "a.parquet"), "not a Parquet file"),
        (lambda folder: [folder / "none.txt"], "there is no such file"),
        (lambda folder: [str(folder / "*.txt")], "no file matches"),
        (lambda folder: [folder], "the folder has no file"),
        (lambda folder: [], "no source"),
        (lambda folder: write_bad(b"x\n", "a.txt")(folder) * 2, "given twice"),
    ],
)
def test_mistakes_are_named_with_their_place(
    tmp_path: Path, write: Callable[[Path], list[str | Path]], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        texts(slices(write(tmp_path), DocumentOptions(slice_bytes=64, max_line_bytes=1000)))
    assert message in str(raised.value)


def test_an_empty_file_has_no_slices(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert slices([tmp_path / "a.txt"]) == []


def test_real_articles(shared: Path) -> None:
    found = slices([shared / "data" / "zh_wiki.jsonl.gz"])
    first = next(found[-1].read())
    assert first.where.endswith(f":{found[-1].parts[0].first_line}")
    assert len(found) == 4


class CountedPart(Part):
    """Counts how often anyone asks for its size."""

    asked: ClassVar[int] = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "size":
            CountedPart.asked += 1
        return super().__getattribute__(name)


def test_the_work_of_listing_grows_with_the_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        (tmp_path / f"{number}.{'txt' if number % 2 else 'pdf'}").write_text("a b c\n")
    hashed, real = 0, PurePath.__hash__

    def hash_counted(self: PurePath) -> int:
        nonlocal hashed
        hashed += 1
        return real(self)

    def counted(*given: Any) -> list[Part]:
        return [CountedPart(**part.model_dump()) for part in parts_of(*given)]

    monkeypatch.setattr(PurePath, "__hash__", hash_counted)
    monkeypatch.setattr("bertie.text.reading.documents.parts_of", counted)
    CountedPart.asked = 0
    events: list[Event] = []
    (found,) = slices([tmp_path], on_event=events.append)
    assert len(found.parts) == 30 and "30 files of unknown format" in events[0].message
    assert CountedPart.asked <= 3 * 30 and hashed <= 10 * 60


def test_texts_in_memory_are_documents(tmp_path: Path) -> None:
    texts = ["one\n\nstill one", "", "two \u4e2d\u6587", "three"]
    for source in (texts, iter(texts)):
        found = slices(Texts(source), DocumentOptions(slice_bytes=30), spool=tmp_path / "spool")
        assert len(found) > 1
        documents = [document for one in found for document in one.read()]
        assert [document.text for document in documents] == texts
        assert documents[2].where == "texts:3"
    with pytest.raises(InputError, match="texts: text 2: this is int, not a text"):
        slices(Texts(["a", 3]), spool=tmp_path)  # type: ignore[list-item]


def test_the_same_texts_have_the_same_digest_wherever_they_are_written(tmp_path: Path) -> None:
    digests = [slices(Texts(["a", "b"]), spool=tmp_path / name)[0].parts[0].digest for name in ("one", "two")]
    assert digests[0] == digests[1]
