"""`predict`: one answer for each row with its number, from files, standard input and arguments; outputs that lose
nothing."""

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bertie
from bertie import disk
from bertie.errors import SpecError

Run = Callable[..., subprocess.CompletedProcess[str]]
ROWS = [{"text": "a good film", "label": "pos"}, {"text": "so dull", "label": "neg"}] * 2


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vocabulary") / "vocab"
    bertie.train_vocab(["a good film so dull ann lives in rome . , !"] * 3, size=60, min_frequency=1, out=out)
    return out


def made(vocabulary: Path, task: str, rows: Any) -> Path:
    out = vocabulary.parent / f"my-{task}"
    given: dict[str, Any] = {"recipe": "bert", "size": "tiny", "tokenizer": vocabulary, "epochs": 1, "batch": 2}
    bertie.finetune(task, train=rows, max_length=16, out=out, **given)
    return out


@pytest.fixture(scope="module")
def model(vocabulary: Path) -> Path:
    return made(vocabulary, "classify", ROWS)


def lines_of(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


# --- rows and their numbers


def test_every_line_has_an_answer_with_its_number(model: Path, run_bertie: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("a good film\n\nso dull\n \nfilm\n")
    done = run_bertie("predict", model, "--input", tmp_path / "texts.txt")
    answers = lines_of(done.stdout)
    assert [answer["row"] for answer in answers] == [1, 2, 3, 4, 5]
    assert ["error" in answer for answer in answers] == [False, True, False, True, False]
    assert "texts.txt:2: the text is empty" in answers[1]["error"] and "label" not in answers[1]
    assert "2 of 5 rows could not be answered" in done.stderr
    assert bertie.load(model).predict(tmp_path / "texts.txt") == answers


def test_standard_input_is_lines_unless_the_format_says_otherwise(
    model: Path, run_bertie: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def piped(content: str, *words: object) -> list[Any]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        done = run_bertie("predict", model, "--input", "-", *words)
        assert done.returncode == 0, done.stderr
        return lines_of(done.stdout)

    lines = piped("a good film\n\nso dull\n")
    assert [(one["row"], one.get("label") is None) for one in lines] == [(1, False), (2, True), (3, False)]
    assert "standard input:2" in lines[1]["error"]
    rows = piped('{"text": "a good film"}\n{"text": "so dull"}\n', "--format", "jsonl")
    assert [one["probability"] for one in rows] == [lines[0]["probability"], lines[2]["probability"]]


def test_the_input_of_a_row_can_be_in_its_answer(model: Path, run_bertie: Run, tmp_path: Path) -> None:
    rows = [{"text": "a good film", "label": "pos"}, {"text": ""}, {"other": 1}]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "{broken\n")
    answers = lines_of(run_bertie("predict", model, "--input", tmp_path / "rows.jsonl", "--with-text").stdout)
    assert [answer["input"] for answer in answers] == [{"text": "a good film"}, {"text": ""}, {}, {}]
    assert bertie.load(model).predict(["so dull"], with_text=True)[0]["input"] == {"text": "so dull"}
    assert "input" not in bertie.load(model).predict(["so dull"])[0]


def test_texts_of_tags_and_of_models_that_do_not_say_whether_they_read_pairs(vocabulary: Path, run_bertie: Run) -> None:
    tagged = [{"words": ["ann", "lives", "in", "rome", "."], "tags": ["B-PER", "O", "O", "B-LOC", "O"]}] * 2
    model = made(vocabulary, "tag", tagged)
    texts = ("ann lives in rome!!!", "(rome)")
    answers = lines_of(run_bertie("predict", model, *texts).stdout)
    assert [answer["words"] for answer in answers] == [
        ["ann", "lives", "in", "rome", "!", "!", "!"],
        ["(", "rome", ")"],
    ]
    assert answers == bertie.load(model).predict(list(texts))
    foreign = bertie.load(made(vocabulary, "classify", ROWS)).task(None).replace(pair=None)
    assert len(foreign.rows_from_texts(["one", "two", "three"])) == 3
    with pytest.raises(SpecError, match=r"two texts can be a pair or two rows.*`input`: a table with the columns text"):
        foreign.rows_from_texts(["one", "two"])


# --- outputs


def test_an_output_never_takes_the_place_of_its_input(model: Path, run_bertie: Run, tmp_path: Path) -> None:
    rows, answers = tmp_path / "rows.tsv", tmp_path / "answers.jsonl"
    rows.write_text("text\ta\na good film\tx\n")
    (tmp_path / "link.tsv").symlink_to(rows)
    for output in (rows, tmp_path / "link.tsv", tmp_path / "." / "rows.tsv"):
        for more in ((), ("--overwrite",)):
            done = run_bertie("predict", model, "--input", rows, "--output", output, *more)
            assert done.returncode == 2 and "is also an input" in done.stderr and "--output" in done.stderr
    assert rows.read_text().startswith("text\ta\n")
    given = ("predict", model, "--input", rows, "--output", answers)
    assert run_bertie(*given).returncode == 0
    before = answers.read_bytes()
    done = run_bertie(*given)
    assert done.returncode == 2 and "exists already; choose another --output, or give --overwrite" in done.stderr
    done = run_bertie(*given, "--overwrite")
    assert done.returncode == 0 and answers.read_bytes() == before
    done = run_bertie("predict", model, "--input", rows, "--output", model / "options.json", "--overwrite")
    assert done.returncode == 2 and "is part of the input" in done.stderr


def test_failed_writes_are_one_sentence(
    model: Path, run_bertie: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    for output in (tmp_path, tmp_path / "file" / "answers.jsonl", "/dev/null"):
        done = run_bertie("predict", model, "so dull", "--output", output)
        assert done.returncode == 2 and "--output" in done.stderr and len(done.stderr.splitlines()) == 1

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "sync_file", refuse)
    done = run_bertie("predict", model, "so dull", "--output", tmp_path / "answers.jsonl", "--quiet")
    assert done.returncode == 2 and "the disk is full; free some space, then run it again" in done.stderr
    assert not list(tmp_path.glob("answers*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_standard_output_is_one_sentence(model: Path) -> None:
    command = [sys.executable, "-m", "bertie", "predict", str(model), "so dull", "--quiet"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.startswith("standard output: the disk is full"), done.stderr
    assert "Traceback" not in done.stderr
