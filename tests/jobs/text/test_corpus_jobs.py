"""`bertie corpus build`, `add` and `verify`: what is printed and what is refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.errors import FolderError, InputError, UserError
from bertie.jobs.text.corpus_jobs import add_to_corpus, build_corpus
from bertie.jobs.text.vocab import train_vocab
from bertie.reporting.events import Event


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("One text. It has two sentences.\n\nAnother text.\n\nOne text. It has two sentences.\n")
    return path


def test_build_add_and_verify(run: Callable[..., str], tmp_path: Path, vocabulary: Path, source: Path) -> None:
    out = run("corpus", "build", source, "--tokenizer", vocabulary, "--out", tmp_path / "c", "--workers", 1)
    assert "2 documents, 3 sentences" in out and "left out: 1 duplicate documents" in out
    (tmp_path / "more.txt").write_text("Another text.\n\nA third one.\n")
    out = run("corpus", "add", tmp_path / "c", tmp_path / "more.txt", "--workers", 1)
    assert "3 documents" in out and "left out: 1 duplicate documents" in out
    assert "2 shards with 3 documents" in run("corpus", "verify", tmp_path / "c")
    shard = next((tmp_path / "c").glob("shard-01-*"))
    content = bytearray(shard.read_bytes())
    content[100] ^= 4
    shard.write_bytes(content)
    with pytest.raises(FolderError, match=shard.name):
        run("corpus", "verify", tmp_path / "c")


def test_what_was_changed_or_not_kept_is_told(
    run: Callable[..., str], tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertie.data.build.build_run.SMALL", 0)
    monkeypatch.setattr("bertie.data.build.build_run.DISK_SHARE", 0.0)
    (tmp_path / "texts.txt").write_text("one  text with some words of its own\u200b and 9 more\n" * 2)
    out = run(
        "corpus", "build", tmp_path / "texts.txt", "--tokenizer", vocabulary, "--out", tmp_path / "c", "--workers", 1
    )
    assert "cleaning: 2 invisible characters" in out and "cleaning: 2 white space runs" in out
    assert "counted: 2 unknown tokens" in out
    assert "bytes of near signatures, which would" in out and "add will not find near copies" in out
    assert "bytes read" not in out


def test_the_report_as_json(run: Callable[..., str], tmp_path: Path, vocabulary: Path, source: Path) -> None:
    out = run("corpus", "build", source, "--tokenizer", vocabulary, "--out", tmp_path / "c", "--workers", 1, "--json",
              "--keep-duplicates", "--keep-near-duplicates", "--paragraphs", "off", "--no-sentences")  # fmt: skip
    found = json.loads(out)
    assert found["num_documents"] == 3 and found["dropped"] == {} and found["tools"]["sentences"] == "none"


def test_the_other_verbs_are_listed_and_found(run: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    run("corpus", "--help")
    assert {"report", "show", "freeze"} <= set(run("corpus", "--help").split())
    assert "NUMBER" in run("corpus", "show", "--help")


def test_mistakes_are_said(run: Callable[..., str], tmp_path: Path, vocabulary: Path, source: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no tokenizer"):
        run("corpus", "build", source, "--tokenizer", tmp_path / "empty", "--out", tmp_path / "c")
    with pytest.raises(UserError, match="no such folder"):
        run("corpus", "add", tmp_path / "absent", source)
    with pytest.raises(UserError, match=r"absent\.txt"):
        run("corpus", "build", tmp_path / "absent.txt", "--tokenizer", vocabulary, "--out", tmp_path / "c")
    with pytest.raises(UserError, match="'klingon!' is not a language code"):
        run("corpus", "build", source, "--tokenizer", vocabulary, "--out", tmp_path / "c", "--language", "klingon!")
    assert not (tmp_path / "c").exists()
    with pytest.raises(UserError, match="this is a file, not a folder"):
        run("corpus", "build", source, "--tokenizer", vocabulary, "--out", source)


@pytest.mark.parametrize("verb", ["build", "add", "verify", "report", "show", "freeze"])
def test_every_verb_explains_itself_with_an_example(run: Callable[..., str], verb: str) -> None:
    *_, heading, last = run("corpus", verb, "--help").rstrip().splitlines()
    assert heading.strip() == "Example:" and last.strip().startswith(f"bertie corpus {verb} ")


def test_a_build_does_not_wait_for_torch() -> None:
    """It takes seconds to import, in every worker, and half of the memory."""
    modules = "bertie.cli.command, bertie.jobs.text.corpus_jobs, bertie.data.build.build_run"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_corpus_from_texts_in_memory_lives_as_long_as_its_object() -> None:
    texts = ["One text. It has two sentences.", "Another text.", "One text. It has two sentences."]
    vocab = train_vocab(texts * 5, size=60)
    built = build_corpus(iter(texts), tokenizer=vocab)
    assert (built.corpus.num_documents, built.report.manifest.num_sentences) == (2, 3)
    assert "2 documents" in str(built) and "2 documents" in built._repr_html_()
    assert add_to_corpus(built.folder, ["A third text."]).corpus.num_documents == 3
    folder = built.folder
    del built
    assert not folder.exists()


def test_events_report_stages(vocabulary: Path, source: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    (tmp_path / "texts.csv").write_text("id,review\n1,one text\n")
    build_corpus([source, tmp_path / "texts.csv"], tokenizer=vocabulary, on_event=events.append)
    stages = {event.data["stage"] for event in events if event.kind == "progress"}
    assert {"computing signatures", "tokenizing"} <= stages
    assert any("reading the column 'review'" in event.message for event in events)


def test_what_is_no_text_is_refused(vocabulary: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="text 2: this is int, not a text"):
        build_corpus(["one", 2], tokenizer=vocabulary)
    with pytest.raises(InputError, match=r"absent\.txt: there is no such file"):
        build_corpus([str(tmp_path / "absent.txt")], tokenizer=vocabulary)
