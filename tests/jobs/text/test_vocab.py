"""`bertie vocab train` and `bertie vocab extend` as a user types them."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import bertie
from bertie.errors import SpecError
from bertie.jobs.text.vocab import extend_vocab, train_vocab
from bertie.text import load_tokenizer

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    lines = (f"The zebrafish number {number} swims, the zebrafinch sings [loudly].\n\n" for number in range(80))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_train_prints_a_table(run_bertie: Run, texts: Path, tmp_path: Path) -> None:
    done = run_bertie("vocab", "train", texts, "--size", 60, "--held-out", 4, "--out", tmp_path / "vocab")
    assert done.returncode == 0, done.stderr
    for words in ("wordpiece, 60 pieces", "80 (", "held-out documents", "unknown rate", "pieces per word"):
        assert words in done.stdout
    again = run_bertie("vocab", "train", texts, "--size", 60, "--out", tmp_path / "vocab")
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_folder_that_holds_an_input_is_not_replaced(run_bertie: Run, texts: Path, tmp_path: Path) -> None:
    out, words = tmp_path / "vocab", tmp_path / "vocab" / "words.txt"
    assert run_bertie("vocab", "train", texts, "--size", 60, "--out", out).returncode == 0
    words.write_text("zebrafish\n", encoding="utf-8")
    for command, message in [
        (("train", words), "has the input"),
        (("extend", out, "--words", texts), "is also an input"),
        (("extend", tmp_path, "--words", words), "has the input"),
    ]:
        done = run_bertie("vocab", *command, "--out", out, "--overwrite")
        assert done.returncode == 2 and message in done.stderr and "choose another --out" in done.stderr, done.stderr
    assert words.read_text(encoding="utf-8") == "zebrafish\n"


def test_train_reads_texts_as_a_corpus_does(run_bertie: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one fish swims\ntwo fish swim\n" * 20, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": null}\n{"text": "one fish"}\n', encoding="utf-8")
    reading = ("--document", "line", "--max-line-bytes", 40, "--null-as-empty", "--json")
    done = run_bertie("vocab", "train", tmp_path / "a.txt", tmp_path / "b.jsonl", *reading, "--out", tmp_path / "vocab")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["num_documents"] == 42
    (tmp_path / "a.txt").write_text("one fish swims" * 4, encoding="utf-8")
    done = run_bertie("vocab", "train", tmp_path / "a.txt", *reading, "--out", tmp_path / "other")
    assert done.returncode == 2 and "limit of 40 bytes" in done.stderr


def test_train_names_a_place_that_is_none(run_bertie: Run, texts: Path) -> None:
    done = run_bertie("vocab", "train", texts, "--out", texts / "vocab")
    assert done.returncode == 2 and done.stderr.startswith(f"{texts}: is a file")


@pytest.mark.parametrize("kind", ["byte-bpe", "unigram", "characters", "words"])
def test_every_kind(run_bertie: Run, texts: Path, tmp_path: Path, kind: str) -> None:
    arguments = ("--kind", kind, "--size", 300, "--special", "[ENT]", "--lowercase", "--json")
    done = run_bertie("vocab", "train", texts, *arguments, "--out", tmp_path / "vocab")
    report = json.loads(done.stdout)
    assert report["kind"] == kind
    tokenizer = load_tokenizer(tmp_path / "vocab")
    assert tokenizer is not None
    assert tokenizer.id_of("[ENT]") == 5
    assert tokenizer.encode("THE zebrafish").ids.tolist() == tokenizer.encode("the zebrafish").ids.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "wordpeice"], "there is no --kind 'wordpeice'; did you mean 'wordpiece'?"),
        (["--size", "9"], "a vocabulary of 9 has no room for 5 special tokens and"),
        (["--ram", "0.001"], "0.001 GB of memory is too little"),
        (["--special", "[MASK]"], "a special token is named twice"),
    ],
)
def test_mistakes_are_one_sentence(
    run_bertie: Run, texts: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run_bertie("vocab", "train", texts, "--out", tmp_path / "vocab", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "vocab").exists()


def test_extend_from_a_list_and_from_texts(run_bertie: Run, texts: Path, tmp_path: Path) -> None:
    run_bertie("vocab", "train", texts, "--size", 60, "--out", tmp_path / "vocab")
    words = tmp_path / "words.txt"
    words.write_text("zebrafish\nsword-fish\n", encoding="utf-8")
    listed = run_bertie("vocab", "extend", tmp_path / "vocab", "--words", words, "--out", tmp_path / "listed")
    assert "1 words added (zebrafish)" in listed.stdout
    assert "not added: sword-fish (the tokenizer sees 3 words in it: sword - fish)" in listed.stdout
    arguments = ("--texts", texts, "--count", 2, "--min-pieces", 2, "--json")
    found = run_bertie("vocab", "extend", tmp_path / "vocab", *arguments, "--out", tmp_path / "found")
    assert len(json.loads(found.stdout)["words"]) == 2


def test_extend_refuses_other_kinds(run_bertie: Run, texts: Path, tmp_path: Path) -> None:
    run_bertie("vocab", "train", texts, "--kind", "words", "--out", tmp_path / "vocab")
    done = run_bertie("vocab", "extend", tmp_path / "vocab", "--words", texts, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "a words tokenizer cannot be extended" in done.stderr
    assert not (tmp_path / "out").exists()


def test_from_python_texts_and_words_are_in_memory() -> None:
    texts = [f"The zebrafish number {number} swims, the zebrafinch sings [loudly]." for number in range(80)]
    vocab = train_vocab(texts, size=60)
    assert vocab.tokenizer.size == vocab.report.size == 60
    assert "wordpiece, 60 pieces" in str(vocab) and "[loudly]" not in str(vocab).splitlines()[0]
    added = extend_vocab(vocab.folder, words=["zebrafish"])
    assert added.report.words == ("zebrafish",) and added.tokenizer.size > 60
    found = extend_vocab(vocab.folder, texts=texts, count=2, min_pieces=2)
    assert len(found.report.words) == 2
    folder = vocab.folder
    del vocab
    assert not folder.exists()


def test_words_or_texts_are_needed(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="give `words`, or `texts` to find them in"):
        extend_vocab(tmp_path)
    with pytest.raises(SpecError, match="`words` and `texts` cannot both be given"):
        extend_vocab(tmp_path, words=["a"], texts=["a"])


def test_the_same_job_from_python_and_the_command_line_writes_the_same_bytes(
    run_bertie: Run, texts: Path, tmp_path: Path
) -> None:
    run_bertie("vocab", "train", texts, "--size", 60, "--out", tmp_path / "shell")
    train_vocab(texts, size=60, out=tmp_path / "python")
    for file in (tmp_path / "shell").iterdir():
        assert file.read_bytes() == (tmp_path / "python" / file.name).read_bytes()


def test_a_report_is_a_table_in_a_notebook() -> None:
    shown = bertie.train_vocab([f"the <b>cat</b> {number} sat" for number in range(60)], size=80)._repr_html_()
    assert "<table>" in shown and "<td>documents read</td>" in shown and "&lt;table" not in shown
    assert "<b>cat" not in shown
