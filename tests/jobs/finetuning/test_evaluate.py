"""`evaluate`: reports and pictures that never replace a user's file, and the label that F1 is about."""

import errno
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bertie
from bertie import disk

Run = Callable[..., subprocess.CompletedProcess[str]]
LABELS = {"pos": "a good film", "neg": "so dull", "mixed": "good so dull"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """By their number of labels."""
    folder = tmp_path_factory.mktemp("models")
    bertie.train_vocab([*LABELS.values()] * 3, size=60, min_frequency=1, out=folder / "vocab")
    given: dict[str, Any] = {"recipe": "bert", "size": "tiny", "tokenizer": folder / "vocab", "epochs": 1}
    found = {}
    for count in (2, 3):
        rows = [{"text": text, "label": label} for label, text in list(LABELS.items())[:count]] * 2
        bertie.finetune("classify", train=rows, max_length=16, out=folder / f"task-{count}", **given)
        found[count] = folder / f"task-{count}"
    return found


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.tsv"
    file.write_text("text\tlabel\na good film\tpos\nso dull\tneg\n")
    return file


def test_f1_names_its_positive_label(models: dict[int, Path], rows: Path, run_bertie: Run) -> None:
    printed = json.loads(run_bertie("evaluate", models[2], "--data", rows, "--json").stdout)
    assert printed["f1_positive"] == "pos" and 0 <= printed["f1"] <= 1 and 0 <= printed["accuracy"] <= 1
    assert "f1 of 'pos'" in run_bertie("evaluate", models[2], "--data", rows).stdout
    found = bertie.evaluate(models[2], rows)
    assert found.positive == "pos" and all(isinstance(value, float) for value in found.metrics.values())
    assert "f1_positive" not in json.loads(run_bertie("evaluate", models[3], "--data", rows, "--json").stdout)


def test_a_report_never_replaces_a_file_of_the_user(
    models: dict[int, Path], rows: Path, run_bertie: Run, tmp_path: Path
) -> None:
    given = ("evaluate", models[2], "--data", rows, "--noise", "0,0.5")
    own = tmp_path / "own.html"
    own.write_text("<html>precious")
    before = rows.read_bytes()
    (tmp_path / "link.html").symlink_to(rows)
    for flag in ("--report", "--png"):
        for output, message in [
            (rows, "is also an input"),
            (tmp_path / "link.html", "is also an input"),
            (own, "exists already"),
            (tmp_path, "is a folder"),
            (rows / "report", "is a file, so nothing can be written into it"),
        ]:
            done = run_bertie(*given, flag, output)
            assert done.returncode == 2 and message in done.stderr and flag in done.stderr, done.stderr
            assert "measured" not in done.stdout + done.stderr, "before the work"
    assert rows.read_bytes() == before and own.read_text() == "<html>precious"
    page, picture = tmp_path / "new" / "report.html", tmp_path / "curve.png"
    for _ in range(2):  # what bertie wrote may be written again
        done = run_bertie(*given, "--report", page, "--png", picture)
        assert done.returncode == 0, done.stderr
    assert page.read_bytes().startswith(b"<!doctype") and picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_fails_is_one_sentence(
    models: dict[int, Path], rows: Path, run_bertie: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(disk, "sync_file", refuse)
    for flag in ("--report", "--png"):
        done = run_bertie("evaluate", models[2], "--data", rows, "--noise", "0", flag, tmp_path / "out", "--quiet")
        assert done.returncode == 2 and done.stderr.startswith(f"{tmp_path / 'out'}: ")
        assert f"choose another {flag}" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("out*"))
