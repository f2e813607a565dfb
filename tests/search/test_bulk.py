"""Embedding a file to a file: right rows in right order, flat memory, continued runs equal to undisturbed ones."""

import gzip
import hashlib
import io
import json
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import bertie.search.bulk
from bertie.errors import InputError, SpecError, UserError
from bertie.reporting.busy import BusyMachine
from bertie.reporting.events import Event, OnEvent, ignore
from bertie.search.bulk import EmbedInterrupted, EmbedReport, Encode, embed_file
from bertie.search.spool import Journal, Spool
from bertie.search.vector_files import VectorFile
from bertie.text.reading.files import TextSource

SETTINGS = {"model": "abc", "pooling": "mean"}
TEXTS = [f"text number {number} " + "word " * (number % 7) if number % 10 else "" for number in range(95)]


@dataclass
class FakeEncoding:
    vectors: np.ndarray
    num_tokens: int
    num_truncated: int
    num_cut: int
    num_empty: int
    num_replaced: int


def vector_of(text: str) -> np.ndarray:
    return np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8).astype(np.float32) / 255  # [32]


def encode(texts: list[str]) -> FakeEncoding:
    words = [len(text.split()) for text in texts]
    cuts = [max(0, count - 6) for count in words]
    vectors = np.stack([vector_of(text) for text in texts])
    return FakeEncoding(vectors, sum(words), sum(cut > 0 for cut in cuts), sum(cuts), words.count(0), len(texts))


class Failing:
    """Encodes some chunks, then fails as told."""

    def __init__(self, num_chunks: int, error: BaseException):
        self.num_left, self.error = num_chunks, error

    def __call__(self, texts: list[str]) -> FakeEncoding:
        if not self.num_left:
            raise self.error
        self.num_left -= 1
        return encode(texts)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bertie.search.bulk, "CHUNK_TEXTS", 10)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return path


def run(
    source: str | Path | TextSource,
    target: Path | VectorFile,
    encode: Encode = encode,
    *,
    settings: Mapping[str, str | int] = SETTINGS,
    restart: bool = False,
    overwrite: bool = False,
    on_event: OnEvent = ignore,
) -> EmbedReport:
    return embed_file(
        encode, source, target, settings=settings, restart=restart, overwrite=overwrite, on_event=on_event
    )


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix in (".part", ".journal", ".tmp"))


def stop_after(num_chunks: int, source: Path | TextSource, target: Path | VectorFile) -> None:
    with pytest.raises(RuntimeError, match="power cut"):
        run(source, target, Failing(num_chunks, RuntimeError("power cut")))


def test_npy_rows_are_the_texts_in_order(source: Path, tmp_path: Path) -> None:
    report = run(source, tmp_path / "v.npy")
    vectors = np.load(tmp_path / "v.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, encode(TEXTS).vectors)
    whole = encode(TEXTS)
    assert (report.num_texts, report.width, report.num_resumed) == (95, 32, 0)
    assert (report.num_tokens, report.num_truncated) == (whole.num_tokens, whole.num_truncated)
    assert (report.num_cut, report.num_empty) == (whole.num_cut, 10)
    assert report.num_replaced == report.num_texts
    assert report.num_truncated > 0 and report.num_cut > report.num_truncated
    assert leftovers(tmp_path) == []


def test_npy_bytes_are_those_numpy_saves(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path / "v.npy")
    buffer = io.BytesIO()
    np.save(buffer, encode(TEXTS).vectors)
    assert (tmp_path / "v.npy").read_bytes() == buffer.getvalue()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_parquet_has_rows_texts_vectors_and_what_made_them(source: Path, tmp_path: Path, dtype: str) -> None:
    run(source, VectorFile(tmp_path / "v.parquet", dtype, with_text=True))
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.column_names == ["row", "text", "vector"]
    assert table["row"].to_pylist() == list(range(95))
    assert table["text"].to_pylist() == TEXTS
    found = np.stack(table["vector"].to_numpy())
    np.testing.assert_array_equal(found, encode(TEXTS).vectors.astype(dtype))
    facts = json.loads(table.schema.metadata[b"bertie"])
    assert facts["settings"]["model"] == "abc" and facts["num_texts"] == 95 and facts["num_empty"] == 10
    assert leftovers(tmp_path) == []


def test_parquet_without_texts_and_in_several_row_groups(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertie.search.vector_files.ROW_GROUP_BYTES", 32 * 4 * 20)
    run(source, tmp_path / "v.parquet")
    file = pq.ParquetFile(tmp_path / "v.parquet")
    assert file.schema_arrow.names == ["row", "vector"] and file.num_row_groups == 5
    np.testing.assert_array_equal(np.stack(file.read()["vector"].to_numpy()), encode(TEXTS).vectors)


def test_float16_is_written_and_never_overflows_silently(source: Path, tmp_path: Path) -> None:
    run(source, VectorFile(tmp_path / "v.npy", "float16"))
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), encode(TEXTS).vectors.astype(np.float16))

    def encode_large(texts: list[str]) -> FakeEncoding:
        return FakeEncoding(np.full((len(texts), 4), 1e6, np.float32), 0, 0, 0, 0, 0)

    with pytest.raises(SpecError, match="too large for float16; write float32"):
        run(source, VectorFile(tmp_path / "w.npy", "float16"), encode_large)


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_no_texts_give_no_rows_of_the_right_width(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    report = run(tmp_path / "empty.txt", tmp_path / name)
    assert (report.num_texts, report.width, report.num_empty) == (0, 32, 0)
    if name == "v.npy":
        assert np.load(tmp_path / name).shape == (0, 32)
    else:
        table = pq.read_table(tmp_path / name)
        assert table.num_rows == 0 and table.schema.field("vector").type.list_size == 32
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("num_chunks", [1, 4, 9])
@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_a_continued_run_gives_the_same_bytes_and_counts(
    source: Path, tmp_path: Path, name: str, num_chunks: int
) -> None:
    whole = run(source, VectorFile(tmp_path / f"whole-{name}", with_text=name == "v.parquet"))
    target = VectorFile(tmp_path / name, with_text=name == "v.parquet")
    stop_after(num_chunks, source, target)
    assert leftovers(tmp_path) == [f"{name}.journal", f"{name}.part"]
    seen: list[str] = []

    def watch(texts: list[str]) -> FakeEncoding:
        seen.extend(texts)
        return encode(texts)

    report = run(source, target, watch)
    assert seen == TEXTS[num_chunks * 10 :]
    assert report.num_resumed == num_chunks * 10
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    same = ("num_texts", "num_tokens", "num_truncated", "num_cut", "num_empty", "num_replaced", "width")
    assert [getattr(report, field) for field in same] == [getattr(whole, field) for field in same]
    assert leftovers(tmp_path) == []


def test_rows_after_the_last_counted_chunk_are_forgotten(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path / "whole.npy")
    stop_after(3, source, tmp_path / "v.npy")
    with (tmp_path / "v.npy.part").open("ab") as part:
        part.write(b"half a chunk that no journal counts")
    run(source, tmp_path / "v.npy")
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_chunks_end_at_a_number_of_characters_too(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bertie.search.bulk, "CHUNK_CHARACTERS", 50)
    sizes: list[int] = []

    def watch(texts: list[str]) -> FakeEncoding:
        sizes.append(sum(map(len, texts)))
        return encode(texts)

    run(source, tmp_path / "v.npy", watch)
    assert max(sizes) < 50 + max(map(len, TEXTS)) and len(sizes) > 10
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), encode(TEXTS).vectors)


def test_other_settings_are_refused_by_name_and_restart_starts_anew(source: Path, tmp_path: Path) -> None:
    stop_after(3, source, tmp_path / "v.npy")
    before = (tmp_path / "v.npy.part").read_bytes()
    with pytest.raises(UserError) as caught:
        run(source, tmp_path / "v.npy", settings={"model": "def", "pooling": "mean", "max_length": 8})
    assert str(caught.value) == (
        f"{tmp_path}/v.npy: an unfinished run of 30 texts does not fit: max_length was None and is now 8; "
        "model was 'abc' and is now 'def'; give `restart` to start over, or the settings it was started with"
    )
    with pytest.raises(UserError, match="dtype was 'float32' and is now 'float16'"):
        run(source, VectorFile(tmp_path / "v.npy", "float16"))
    with pytest.raises(UserError, match="column was None and is now 'body'"):
        run(TextSource(source, column="body"), tmp_path / "v.npy")
    assert (tmp_path / "v.npy.part").read_bytes() == before
    report = run(source, tmp_path / "v.npy", settings={"model": "def"}, restart=True)
    assert report.num_resumed == 0 and report.num_texts == 95


@pytest.mark.parametrize("change", ["edit", "shorten"])
def test_other_texts_are_refused(source: Path, tmp_path: Path, change: str) -> None:
    stop_after(3, source, tmp_path / "v.npy")
    lines = source.read_text().splitlines(keepends=True)
    lines[12] = "text number 21 word\n"
    source.write_text("".join(lines if change == "edit" else lines[:5]))
    with pytest.raises(UserError, match="unfinished run of 30 texts does not fit: its first 30 texts are not those of"):
        run(source, tmp_path / "v.npy")
    assert leftovers(tmp_path) == ["v.npy.journal", "v.npy.part"]


def test_a_mended_line_after_the_safe_ones_lets_the_run_go_on(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) + "\n" for text in TEXTS]
    source = tmp_path / "a.jsonl"
    source.write_text("".join([*lines[:55], "{broken\n", *lines[56:]]))
    with pytest.raises(InputError, match=r"a.jsonl:56: not valid JSON"):
        run(source, tmp_path / "v.npy")
    source.write_text("".join(lines))
    assert run(source, tmp_path / "v.npy").num_resumed == 50
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), encode(TEXTS).vectors)


def test_standard_input_continues_when_it_brings_the_same_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = "\n".join(TEXTS).encode()

    def feed(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    feed(data)
    with pytest.raises(RuntimeError, match="power cut"):
        run("-", tmp_path / "v.npy", Failing(2, RuntimeError("power cut")))
    feed(b"other\n" + data)
    with pytest.raises(UserError, match="first 20 texts are not those of the input"):
        run("-", tmp_path / "v.npy")
    feed(data)
    assert run("-", tmp_path / "v.npy").num_resumed == 20
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), encode(TEXTS).vectors)


def test_a_finished_file_is_replaced_only_when_asked(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    target.write_bytes(b"precious")
    with pytest.raises(UserError, match=r"v.npy: the file exists already; give `overwrite` to replace it"):
        run(source, target)
    with pytest.raises(UserError, match="exists already"):
        run(source, target, restart=True)
    assert target.read_bytes() == b"precious" and leftovers(tmp_path) == []
    with pytest.raises(RuntimeError):
        run(source, target, Failing(3, RuntimeError()), overwrite=True)
    assert target.read_bytes() == b"precious"
    assert run(source, target, overwrite=True).num_resumed == 30
    np.testing.assert_array_equal(np.load(target), encode(TEXTS).vectors)


def test_a_run_that_got_nowhere_leaves_no_files(source: Path, tmp_path: Path) -> None:
    stop_after(0, source, tmp_path / "v.npy")
    assert leftovers(tmp_path) == []


def test_ctrl_c_says_what_is_safe_and_the_run_goes_on(source: Path, tmp_path: Path) -> None:
    with pytest.raises(EmbedInterrupted, match="stopped; 40 texts are safe, and the same command continues there"):
        run(source, tmp_path / "v.npy", Failing(4, KeyboardInterrupt()))
    assert run(source, tmp_path / "v.npy").num_resumed == 40


def test_an_interrupt_just_after_a_chunk_was_written_does_not_lose_it(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Spool.append

    def append(spool: Spool, rows: np.ndarray, before: Journal, after: Journal) -> None:
        real(spool, rows, before, after)
        raise KeyboardInterrupt

    monkeypatch.setattr(Spool, "append", append)
    with pytest.raises(EmbedInterrupted, match="stopped; 10 texts are safe"):
        run(source, tmp_path / "v.npy")
    monkeypatch.setattr(Spool, "append", real)
    assert run(source, tmp_path / "v.npy").num_resumed == 10


def test_two_runs_do_not_write_the_same_file(source: Path, tmp_path: Path) -> None:
    def encode_and_start_another(texts: list[str]) -> FakeEncoding:
        with pytest.raises(UserError, match=r"another process is using .*v.npy"):
            run(source, tmp_path / "v.npy", restart=True)
        return encode(texts)

    run(source, tmp_path / "v.npy", encode_and_start_another)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), encode(TEXTS).vectors)


def test_outputs_that_cannot_work_are_refused_before_the_work(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
    cases: list[tuple[Path | TextSource, VectorFile, str]] = [
        (source, VectorFile(tmp_path / "v.csv"), "neither .npy nor .parquet"),
        (source, VectorFile(tmp_path / "v.npy", "int8"), "float32 or float16, not 'int8'"),
        (source, VectorFile(tmp_path / "v.npy", with_text=True), "an .npy file has no place for texts"),
        (TextSource("-"), VectorFile(tmp_path / "v.parquet", with_text=True), "texts of a pipe cannot be kept"),
        (source, VectorFile(tmp_path / "none" / "v.npy"), "there is no folder .*none to write to"),
    ]
    (tmp_path / "folder.npy").mkdir()
    cases.append((source, VectorFile(tmp_path / "folder.npy"), "is a folder; name a file in it"))
    run(source, VectorFile(tmp_path / "in.parquet", with_text=True))
    same = VectorFile(tmp_path / "in.parquet", with_text=True)
    cases.append((tmp_path / "in.parquet", same, "in.parquet: is also an input"))
    for name in ("w.npy.part", "w.npy.journal"):
        (tmp_path / name).write_bytes(source.read_bytes())
        texts = TextSource(tmp_path / name, format="txt")
        cases.append((texts, VectorFile(tmp_path / "w.npy"), f"{name}: is also an input"))
    for given, target, expected in cases:
        with pytest.raises(UserError, match=expected):
            run(given, target, Failing(0, AssertionError("began to work")), overwrite=True)


def test_a_text_that_the_encoder_refuses_is_placed_in_the_file(source: Path, tmp_path: Path) -> None:
    refusal = InputError("text 3 has 900 tokens, the model takes at most 512", hint="give max_length=512")
    with pytest.raises(InputError) as caught:
        run(source, tmp_path / "v.npy", Failing(2, refusal))
    placed = f"{source}, in lines 21 to 30 (text 0 to 9): text 3 has 900 tokens, the model takes at most 512"
    assert str(caught.value) == f"{placed}; give max_length=512"


def test_an_encoder_that_loses_a_vector_is_a_bug(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gave 9 vectors for 10 texts"):
        run(source, tmp_path / "v.npy", lambda texts: encode(texts[1:]))


def test_progress_counts_up_and_knows_the_fraction(source: Path, tmp_path: Path) -> None:
    stop_after(3, source, tmp_path / "v.npy")
    events: list[Event] = []
    run(source, tmp_path / "v.npy", on_event=events.append)
    assert [event.data["done"] for event in events] == [30, 40, 50, 60, 70, 80, 90, 95]
    assert events[0].data["tokens_per_second"] == 0.0 and events[1].data["tokens_per_second"] > 0.0
    assert events[-1].data["fraction"] == 1.0


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_memory_does_not_grow_with_the_input(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bertie.search.bulk, "CHUNK_TEXTS", 500)
    monkeypatch.setattr("bertie.search.vector_files.ROW_GROUP_BYTES", 100_000)

    def peak(count: int) -> int:
        source = tmp_path / f"{count}.txt.gz"
        with gzip.open(source, "wt", 1) as file:
            file.writelines(f"text {number} " + "x" * 200 + "\n" for number in range(count))
        tracemalloc.start()
        run(source, VectorFile(tmp_path / f"{count}-{name}", with_text=name == "v.parquet"))
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    assert peak(16_000) < 1.3 * peak(4_000)  # 2 MB of vectors and 3 MB of text in the larger


def test_a_busy_machine_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = BusyMachine(2, 2, clock=iter(range(0, 100_000, 100)).__next__, load=lambda: 6.0)
    monkeypatch.setattr(bertie.search.bulk, "BusyMachine", lambda num_threads: watch)
    monkeypatch.setattr(bertie.search.bulk, "CHUNK_TEXTS", 10)
    (tmp_path / "texts.txt").write_text("a text of words\n" * 95)
    seen: list[Event] = []
    embed_file(encode, tmp_path / "texts.txt", tmp_path / "v.npy", settings=SETTINGS, on_event=seen.append)
    (warning,) = [event.message for event in seen if event.kind == "warning"]
    assert warning.startswith("the machine is busy: the load average is 6.0 on 2 cores")
