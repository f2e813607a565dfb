"""`bertie corpus build`, `add` and `verify`: what is printed and what is refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from bertie.cli.corpus import corpus
from bertie.errors import FolderError, UserError


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`run("build", ...)` gives what was printed."""

    def call(*arguments: object) -> str:
        owner = typer.Typer()
        owner.add_typer(corpus, name="corpus")
        capsys.readouterr()
        get_command(owner).main(["corpus", *map(str, arguments)], standalone_mode=False)
        return capsys.readouterr().out

    return call


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz."
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("One text. It has two sentences.\n\nAnother text.\n\nOne text. It has two sentences.\n")
    return path


def test_build_add_and_verify(run: Callable[..., str], tmp_path: Path, vocabulary: Path, source: Path) -> None:
    out = run("build", source, "--tokenizer", vocabulary, "--out", tmp_path / "c", "--workers", 1)
    assert "2 documents, 3 sentences" in out and "left out: 1 duplicate documents" in out
    (tmp_path / "more.txt").write_text("Another text.\n\nA third one.\n")
    out = run("add", tmp_path / "c", tmp_path / "more.txt", "--workers", 1)
    assert "3 documents" in out and "left out: 1 duplicate documents" in out
    assert "2 shards with 3 documents" in run("verify", tmp_path / "c")
    shard = next((tmp_path / "c").glob("shard-01-*"))
    content = bytearray(shard.read_bytes())
    content[100] ^= 4
    shard.write_bytes(content)
    with pytest.raises(FolderError, match=shard.name):
        run("verify", tmp_path / "c")


def test_what_was_changed_or_not_kept_is_told(
    run: Callable[..., str], tmp_path: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertie.data.build.run.SMALL", 0)
    monkeypatch.setattr("bertie.data.build.run.DISK_SHARE", 0.0)
    (tmp_path / "texts.txt").write_text("one  text with some words of its own\u200b and 9 more\n" * 2)
    out = run("build", tmp_path / "texts.txt", "--tokenizer", vocabulary, "--out", tmp_path / "c", "--workers", 1)
    assert "cleaning: 2 invisible characters" in out and "cleaning: 2 white space runs" in out
    assert "counted: 2 unknown tokens" in out
    assert "bytes of near signatures, for which" in out and "add will not see near copies" in out
    assert "bytes read" not in out


def test_the_report_as_json(run: Callable[..., str], tmp_path: Path, vocabulary: Path, source: Path) -> None:
    out = run("build", source, "--tokenizer", vocabulary, "--out", tmp_path / "c", "--workers", 1, "--json",
              "--no-duplicates", "--no-near-duplicates", "--paragraphs", "off", "--no-sentences")  # fmt: skip
    found = json.loads(out)
    assert found["num_documents"] == 3 and found["dropped"] == {} and found["tools"]["sentences"] == "none"


def test_the_other_verbs_are_listed_and_found(run: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    run("--help")
    assert {"report", "show", "freeze"} <= set(run("--help").split())
    assert "number" in run("show", "--help")


def test_mistakes_are_said(run: Callable[..., str], tmp_path: Path, vocabulary: Path, source: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no tokenizer"):
        run("build", source, "--tokenizer", tmp_path / "empty", "--out", tmp_path / "c")
    with pytest.raises(UserError, match="no such folder"):
        run("add", tmp_path / "absent", source)
    with pytest.raises(UserError, match=r"absent\.txt"):
        run("build", tmp_path / "absent.txt", "--tokenizer", vocabulary, "--out", tmp_path / "c")
    with pytest.raises(UserError, match="'klingon!' is not a language code"):
        run("build", source, "--tokenizer", vocabulary, "--out", tmp_path / "c", "--language", "klingon!")
    assert not (tmp_path / "c").exists()
    with pytest.raises(UserError, match="this is a file, not a folder"):
        run("build", source, "--tokenizer", vocabulary, "--out", source)


@pytest.mark.parametrize("verb", ["build", "add", "verify", "report", "show", "freeze"])
def test_every_verb_explains_itself_with_an_example(run: Callable[..., str], verb: str) -> None:
    *_, heading, last = run(verb, "--help").rstrip().splitlines()
    assert heading.strip() == "Example:" and last.strip().startswith(f"bertie corpus {verb} ")


def test_a_build_does_not_wait_for_torch() -> None:
    """It takes seconds to import, in every worker, and half of the memory."""
    code = "import sys, bertie.cli.corpus, bertie.data.build.run; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
