"""What can go wrong while a corpus is built: kills at any moment, a full disk, other options; and its memory."""

import errno
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bertie.data.build import BuildOptions, add_to_corpus, build_corpus, signing
from bertie.data.build import build_run as run
from bertie.data.corpus import Corpus
from bertie.data.manifest import Manifest
from bertie.errors import UserError
from bertie.text.reading.documents import DocumentOptions
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

# A process of its own, because it will be killed. With one worker it also notes every document that it reads.
SCRIPT = """
import sys, time
from pathlib import Path
from bertie.data.build import build_corpus
from bertie.data.build.parts import Work
from bertie.text.reading.documents import DocumentOptions
from bertie.text.tokenizers.tokenizer import load_tokenizer

def main():
    source, vocabulary, target, log, workers, slice_bytes = sys.argv[1:]
    read = Work.documents
    def documents(self):
        with open(log, "a") as notes:
            for document in read(self):
                notes.write("1")
                notes.flush()
                time.sleep(0.0005)
                yield document
    Work.documents = documents
    reading = DocumentOptions(slice_bytes=int(slice_bytes)) if int(slice_bytes) else None
    tokenizer = load_tokenizer(vocabulary)
    report = build_corpus(target, source.split(","), tokenizer, reading=reading, num_workers=int(workers))
    print(report.resumed)

if __name__ == "__main__":
    main()
"""
NUM_DOCUMENTS = 600
SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *SYLLABLES, *(f"##{one}" for one in SYLLABLES)]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    return folder


@pytest.fixture(scope="module")
def tokenizer(vocabulary: Path) -> Tokenizer:
    found = load_tokenizer(vocabulary)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(0)
    texts = [" ".join("".join(rng.choices(SYLLABLES, k=3)) for _ in range(100)) + "." for _ in range(NUM_DOCUMENTS)]
    texts[500:510] = texts[:10]
    path = tmp_path_factory.mktemp("source") / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text, "title": "x"}) + "\n" for text in texts))
    return path


READING = DocumentOptions(slice_bytes=12_000)


@pytest.fixture(scope="module")
def whole(source: Path, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an undisturbed build."""
    target = tmp_path_factory.mktemp("whole") / "corpus"
    build_corpus(target, [source], tokenizer, reading=READING)
    return files_of(target)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def start(source: str, vocabulary: Path, target: Path, log: Path, workers: int = 1, size: int = 12_000) -> Any:
    words = [sys.executable, "-c", SCRIPT, source, str(vocabulary), str(target), str(log), str(workers), str(size)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def num_notes(target: Path) -> int:
    try:
        return (target / ".build" / "journal.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ten_kills_change_no_byte_and_cost_little(
    source: Path, vocabulary: Path, whole: dict[str, bytes], tmp_path: Path, workers: int
) -> None:
    rng, target, log, num_kills = random.Random(workers), tmp_path / "corpus", tmp_path / "log", 0
    for _ in range(10):
        process = start(str(source), vocabulary, target, log, workers)
        before = num_notes(target)
        while process.poll() is None and num_notes(target) < before + 4:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.03))
        process.kill()
        num_kills += process.wait() == -signal.SIGKILL
    assert num_kills == 10 and not (target / "manifest.json").exists()
    process = start(str(source), vocabulary, target, log, workers)
    out, _ = process.communicate()
    assert process.returncode == 0 and "'signatures':" in out
    assert files_of(target) == whole
    if workers == 1:  # twice each document, once to compare and once to tokenise
        assert 2 * NUM_DOCUMENTS <= log.stat().st_size <= 1.5 * 2 * NUM_DOCUMENTS


def test_workers_end_with_a_killed_parent(source: Path, vocabulary: Path, tmp_path: Path) -> None:
    process = start(str(source), vocabulary, tmp_path / "corpus", tmp_path / "log", 2)
    while num_notes(tmp_path / "corpus") < 4:
        time.sleep(0.005)
    children = children_of(process.pid)
    assert len(children) >= 2
    process.kill()
    process.wait()
    for _ in range(500):
        if not any(Path(f"/proc/{child}/statm").exists() and is_alive(child) for child in children):
            return
        time.sleep(0.02)
    pytest.fail("a worker went on without its parent")


class Killed(BaseException):
    """Stands for kill -9 at one system call: nothing after it happens."""


def test_a_death_before_any_single_step_loses_nothing(
    source: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join(source.read_text().splitlines(keepends=True)[480:510]))
    steps = 0

    def watched(real: Callable[..., Any], die_at: int | None) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            nonlocal steps
            if die_at is not None and steps >= die_at:
                raise Killed
            steps += 1
            return real(*given, **named)

        return step

    def build(target: Path, die_at: int | None) -> None:
        nonlocal steps
        steps = 0
        with monkeypatch.context() as patch:
            for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (shutil, "rmtree")):
                patch.setattr(owner, name, watched(getattr(owner, name), die_at))
            build_corpus(target, [few], tokenizer, reading=READING)

    build(tmp_path / "whole", None)
    total, wanted = steps, files_of(tmp_path / "whole")
    assert total > 40
    for die_at in range(0, total, 3):
        target = tmp_path / f"died-{die_at}"
        try:
            build(target, die_at)
        except Killed:
            # A death in the very last sweeping leaves a corpus that is finished, and says so.
            with suppress(UserError):
                build_corpus(target, [few], tokenizer, reading=READING)
        assert files_of(target) == wanted


def test_a_full_disk_is_one_sentence_and_the_build_goes_on(
    source: Path, tokenizer: Tokenizer, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, room = os.fsync, 60

    def full(handle: int) -> None:
        nonlocal room
        room -= 1
        if room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match="the disk is full; free some space, then run it again") as refusal:
            build_corpus(tmp_path / "corpus", [source], tokenizer, reading=READING)
    assert str(tmp_path / "corpus") in str(refusal.value) and "\n" not in str(refusal.value)
    report = build_corpus(tmp_path / "corpus", [source], tokenizer, reading=READING)
    assert report.resumed["signatures"] > 0
    assert files_of(tmp_path / "corpus") == whole


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_small_disk_fills_and_is_enlarged(
    source: Path, tokenizer: Tokenizer, whole: dict[str, bytes], small_disk: Path, workers: int
) -> None:
    target = small_disk / "corpus"
    with pytest.raises(UserError, match="the disk is full"):
        build_corpus(target, [source], tokenizer, reading=READING, num_workers=workers)
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    report = build_corpus(target, [source], tokenizer, reading=READING, num_workers=workers)
    assert sum(report.resumed.values()) > 0 and files_of(target) == whole


@pytest.fixture
def unfinished(source: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose build was interrupted in its first stage, and a copy of the source beside it."""
    copied = tmp_path / "texts.jsonl"
    shutil.copy(source, copied)
    calls = 0

    def sign(*given: Any) -> dict[str, int]:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise KeyboardInterrupt
        return signing.sign(*given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run, "sign", sign)
        build_corpus(tmp_path / "corpus", [copied], tokenizer, reading=READING)
    return tmp_path


def test_other_options_and_sources_are_refused(unfinished: Path, tokenizer: Tokenizer, whole: dict[str, bytes]) -> None:
    copied, target = unfinished / "texts.jsonl", unfinished / "corpus"
    with pytest.raises(UserError, match='`language` was "auto" and is now "zh"'):
        build_corpus(target, [copied], tokenizer, BuildOptions(language="zh"), reading=READING)
    content = copied.read_text()
    copied.write_text(content.replace("ba", "da", 1))
    with pytest.raises(UserError, match=r"the file .*texts.jsonl was"):
        build_corpus(target, [copied], tokenizer, reading=READING)
    copied.write_text(content)
    assert build_corpus(target, [copied], tokenizer, reading=READING).resumed == {"signatures": 5}
    found = files_of(target)
    assert {name: found[name] for name in whole if name.startswith("shard")} == {
        name: content for name, content in whole.items() if name.startswith("shard")
    }


def test_restart_forgets_what_was_begun(unfinished: Path, tokenizer: Tokenizer) -> None:
    options = BuildOptions(paragraphs="off")
    report = build_corpus(
        unfinished / "corpus", [unfinished / "texts.jsonl"], tokenizer, options, reading=READING, restart=True
    )
    assert report.resumed == {} and report.manifest.dropped == {"duplicate documents": 10}


def test_an_interrupted_add_leaves_the_corpus_usable(
    source: Path, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, target = source.read_text().splitlines(keepends=True), tmp_path / "corpus"
    (tmp_path / "first.jsonl").write_text("".join(lines[:100]))
    (tmp_path / "second.jsonl").write_text("".join(lines[100:200]))
    build_corpus(target, [tmp_path / "first.jsonl"], tokenizer, reading=READING)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Manifest, "write", lambda self, folder: (_ for _ in ()).throw(Killed()))
        add_to_corpus(target, [tmp_path / "second.jsonl"], tokenizer, reading=READING)
    assert Corpus.open(target, tokenizer).num_documents == 100
    with monkeypatch.context() as patch, pytest.raises(Killed):  # and once more, when only the sweeping is left
        patch.setattr("bertie.data.build.journal.Journal.remove", lambda self: (_ for _ in ()).throw(Killed()))
        add_to_corpus(target, [tmp_path / "second.jsonl"], tokenizer, reading=READING)
    report = add_to_corpus(target, [tmp_path / "second.jsonl"], tokenizer, reading=READING)
    assert report.manifest.num_documents == 200 and len(report.manifest.layers) == 2
    assert not (target / ".build").exists()


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of(process: int) -> list[int]:
    """All below, by /proc."""
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may be gone by now
            found += map(int, path.read_text().split())
    return [*found, *(below for child in found for below in children_of(child))]


def peak_memory(process: "subprocess.Popen[str]") -> int:
    """The highest sum of resident memory over the process and all below it, in bytes."""
    peak, page = 0, os.sysconf("SC_PAGE_SIZE")
    while process.poll() is None:
        total = 0
        for one in (process.pid, *children_of(process.pid)):
            try:
                total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * page
            except (FileNotFoundError, ProcessLookupError, IndexError):
                continue
        peak = max(peak, total)
        time.sleep(0.02)
    return peak


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_text(source: Path, vocabulary: Path, tmp_path: Path) -> None:
    lines = source.read_text().splitlines()
    rng = random.Random(1)
    large = tmp_path / "large.jsonl"
    with large.open("w") as file:
        for number in range(8):  # 10 MB in all, no two documents alike
            for line in lines:
                words = line.split(" ")
                file.write(json.dumps({"text": f"{number} " + " ".join(rng.sample(words, len(words)))}) + "\n")
    peaks = []
    for path in (source, large):
        process = start(str(path), vocabulary, tmp_path / path.stem, tmp_path / "log", 2, 200_000)
        peaks.append(peak_memory(process))
        assert process.returncode == 0
    assert peaks[1] < 1_000_000_000 and peaks[1] < peaks[0] + 100_000_000


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("times", [1, 5])
def test_the_memory_of_real_text_stays_under_a_gigabyte(shared: Path, tmp_path: Path, times: int) -> None:
    sources = [shared / "data" / f"{name}_wiki.jsonl.gz" for name in ("en", "zh")]
    if not all(path.exists() for path in sources):
        pytest.skip("the two wikis are not there")
    sources += [write_changed(path, tmp_path, copy) for path in sources[:2] for copy in range(1, times)]
    words = [sys.executable, "-c", SCRIPT.replace("time.sleep(0.0005)", "pass")]
    vocabulary = shared / "vocab" / "bert-base-multilingual-cased"
    given = [",".join(map(str, sources)), vocabulary, tmp_path / "corpus", os.devnull, 2, 0]
    process = subprocess.Popen([*words, *map(str, given)], stdout=subprocess.PIPE, text=True)
    peak = peak_memory(process)
    assert process.returncode == 0
    manifest = Manifest.read(tmp_path / "corpus")
    assert manifest.counts["documents read"] == 7706 * times
    # A tenth of the words changed is no copy.
    assert manifest.dropped.get("near-duplicate documents", 0) <= 0.02 * 7706 * times
    assert peak <= 1_000_000_000


def write_changed(path: Path, folder: Path, seed: int) -> Path:
    """A copy with a tenth of the words changed; without spaces, a tenth of the characters."""
    rng = random.Random(seed)
    target = folder / f"{path.name.split('.')[0]}-{seed}.jsonl"
    is_spaced = path.name.startswith("en")
    with gzip.open(path, "rt", encoding="utf-8") as lines, target.open("w", encoding="utf-8") as file:
        for line in lines:
            article = json.loads(line)
            units = article["text"].split(" ") if is_spaced else list(article["text"])
            for place in rng.sample(range(len(units)), len(units) // 10):
                if "\n" not in units[place]:
                    units[place] = f"w{rng.randrange(10**5)}" if is_spaced else chr(rng.randrange(0x4E00, 0x9000))
            article["text"] = (" " if is_spaced else "").join(units)
            file.write(json.dumps(article, ensure_ascii=False) + "\n")
    return target
