"""What can go wrong while a file is embedded: kills at any moment, a full disk, failed writes, lost files."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.errors import InputError, UserError
from bertie.search import bulk, spool
from bertie.search.bulk import embed_file
from bertie.search.vector_files import VectorFile

# A process of its own, because it will be killed. Vectors depend on the text alone; each chunk takes a moment.
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background hands on that it is ignored
import sys, time, zlib
from types import SimpleNamespace
import numpy as np
from pathlib import Path
from bertie.search import bulk
from bertie.search.vector_files import VectorFile

source, target, pause = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
bulk.CHUNK_TEXTS = 25

def encode(texts):
    time.sleep(pause)
    rows = [np.random.default_rng(zlib.crc32(text.encode())).random(16, np.float32) for text in texts]
    counts = dict.fromkeys(("num_truncated", "num_cut", "num_empty", "num_replaced"), 0)
    return SimpleNamespace(vectors=np.stack(rows), num_tokens=len(texts), **counts)

print("ready", flush=True)
output = VectorFile(target, with_text=target.suffix == ".parquet")
report = bulk.embed_file(encode, source, output, settings={"model": "m"})
print(report.num_texts, report.num_resumed)
"""
NUM_TEXTS = 1000


class FakeEncoding:
    def __init__(self, texts: list[str]):
        rows = [np.random.default_rng(zlib.crc32(text.encode())).random(4, np.float32) for text in texts]
        self.vectors = np.stack(rows)  # [n, 4]
        self.num_tokens, self.num_truncated, self.num_cut, self.num_empty, self.num_replaced = len(texts), 0, 0, 0, 0


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"text {number}\n" for number in range(NUM_TEXTS)))
    return path


def start(source: Path, target: Path, pause: float) -> "subprocess.Popen[str]":
    arguments = [sys.executable, "-c", SCRIPT, str(source), str(target), str(pause)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_kills_at_random_moments_change_no_byte(source: Path, tmp_path: Path, name: str) -> None:
    assert start(source, tmp_path / f"whole-{name}", 0).wait() == 0
    rng, num_kills, target = random.Random(5), 0, tmp_path / name
    for _ in range(6):
        process = start(source, target, 0.01)
        time.sleep(rng.uniform(0.02, 0.15))
        process.kill()
        num_kills += process.wait() == -signal.SIGKILL
        if target.exists():
            break
    assert num_kills >= 2
    if not target.exists() or list(tmp_path.glob(f"{name}.*")):
        process = start(source, target, 0)
        out, _ = process.communicate()
        assert process.returncode == 0
        assert int(out.split()[0]) == NUM_TEXTS and int(out.split()[1]) > 0
    assert target.read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    assert list(tmp_path.glob(f"{name}.*")) == []


def test_an_interrupt_from_the_keyboard_leaves_a_state_to_continue(source: Path, tmp_path: Path) -> None:
    process = start(source, tmp_path / "v.npy", 0.02)
    while not (tmp_path / "v.npy.journal").exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    process = start(source, tmp_path / "v.npy", 0)
    out, _ = process.communicate()
    assert process.returncode == 0 and int(out.split()[1]) > 0


class Killed(BaseException):
    """Stands for kill -9 at one system call: nothing after it happens."""


STEPS = ["write", "fsync", "rename", "unlink"]


def count_steps(monkeypatch: pytest.MonkeyPatch, die_at: int | None) -> list[str]:
    """Notes every step that changes the disk, and dies just before the one numbered `die_at`, for good."""
    steps: list[str] = []

    def watch(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            if die_at is not None and len(steps) >= die_at:
                raise Killed
            steps.append(name)
            return real(*given, **named)

        return step

    monkeypatch.setattr(spool, "_write_all", watch("write", spool._write_all))
    monkeypatch.setattr(os, "fsync", watch("fsync", os.fsync))
    monkeypatch.setattr(Path, "replace", watch("rename", Path.replace))
    monkeypatch.setattr(Path, "unlink", watch("unlink", Path.unlink))
    return steps


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_a_death_before_any_single_step_loses_nothing(source: Path, tmp_path: Path, name: str) -> None:
    target = VectorFile(tmp_path / name, with_text=name == "v.parquet")
    bulk_chunk = 250

    def embed() -> None:
        embed_file(FakeEncoding, source, target, settings={"model": "m"})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "CHUNK_TEXTS", bulk_chunk)
        steps = count_steps(patch, None)
        embed()
    whole = target.path.read_bytes()
    assert set(steps) == set(STEPS)
    for die_at in range(len(steps)):
        target.path.unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bulk, "CHUNK_TEXTS", bulk_chunk)
            count_steps(patch, die_at)
            with pytest.raises(Killed):
                embed()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bulk, "CHUNK_TEXTS", bulk_chunk)
            embed()
        assert target.path.read_bytes() == whole, f"after a death before step {die_at}, {steps[die_at]}"
        assert list(tmp_path.glob(f"{name}.*")) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own. 4,000 texts give 64 KB of vectors."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only the superuser of a Linux machine can mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_a_full_disk_is_one_sentence_and_the_run_continues_when_there_is_space(
    small_disk: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK_TEXTS", 100)
    source = tmp_path / "texts.txt"
    source.write_text("".join(f"text {number}\n" for number in range(4000)))
    embed_file(FakeEncoding, source, tmp_path / name, settings={"model": "m"})
    # The part file of .npy meets the end of the disk while it grows; that of .parquet leaves no room for the table.
    (small_disk / "ballast").write_bytes(b"x" * (220_000 if name == "v.npy" else 150_000))
    with pytest.raises(UserError) as caught:
        embed_file(FakeEncoding, source, small_disk / name, settings={"model": "m"})
    said = str(caught.value)
    assert said.startswith(f"{small_disk}/{name}: after ") and "texts, the disk is full" in said
    assert said.endswith("free some space, then run it again: it continues there")
    assert not (small_disk / name).exists()
    (small_disk / "ballast").unlink()
    report = embed_file(FakeEncoding, source, small_disk / name, settings={"model": "m"})
    assert report.num_resumed > 0
    assert (small_disk / name).read_bytes() == (tmp_path / name).read_bytes()


def test_a_failed_write_anywhere_is_one_sentence(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK_TEXTS", 100)
    real, calls = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 11:
            raise OSError(errno.EIO, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(UserError, match=r"v.npy: after 300 texts, writing failed \(Input/output error\)"):
        embed_file(FakeEncoding, source, tmp_path / "v.npy", settings={"model": "m"})
    assert embed_file(FakeEncoding, source, tmp_path / "v.npy", settings={"model": "m"}).num_resumed == 300


def stop_halfway(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK_TEXTS", 100)
    num_chunks = 0

    def encode(texts: list[str]) -> FakeEncoding:
        nonlocal num_chunks
        num_chunks += 1
        if num_chunks == 6:
            raise Killed
        return FakeEncoding(texts)

    with pytest.raises(Killed):
        embed_file(encode, source, target, settings={"model": "m"})


def test_lost_rows_and_a_broken_journal_are_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "v.npy"
    stop_halfway(source, target, monkeypatch)
    os.truncate(tmp_path / "v.npy.part", 1000)
    with pytest.raises(UserError, match=r"v.npy.part: the file has fewer than the 500 rows that v.npy.journal counts"):
        embed_file(FakeEncoding, source, target, settings={"model": "m"})
    (tmp_path / "v.npy.journal").write_text('{"version": 1, "sta')
    with pytest.raises(UserError, match=r"v.npy.journal: the journal cannot be read; give `restart`"):
        embed_file(FakeEncoding, source, target, settings={"model": "m"})
    assert embed_file(FakeEncoding, source, target, settings={"model": "m"}, restart=True).num_texts == NUM_TEXTS


def test_texts_that_change_before_the_table_is_written_stop_it(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK_TEXTS", 100)
    num_chunks = 0

    def encode(texts: list[str]) -> FakeEncoding:
        nonlocal num_chunks
        num_chunks += 1
        if num_chunks == 10:
            source.write_text(source.read_text().replace("text 42\n", "text 43\n"))
        return FakeEncoding(texts)

    target = VectorFile(tmp_path / "v.parquet", with_text=True)
    with pytest.raises(InputError, match=r"texts.txt: the texts have changed since they were embedded; give `restart`"):
        embed_file(encode, source, target, settings={"model": "m"})
    assert not target.path.exists() and not (tmp_path / "v.parquet.tmp").exists()
