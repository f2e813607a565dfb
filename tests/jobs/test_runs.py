"""`bertie runs`: listed, drawn, compared, as pages and pictures."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Make = Callable[..., Path]


def test_runs_are_listed(run_bertie: Run, fake_run: Make) -> None:
    folder = fake_run("a").parent
    (fake_run("b") / "summary.json").write_text("{}")
    listed = json.loads(run_bertie("runs", folder, "--json").stdout)
    assert [(one["name"], one["size"], one["step"], one["finished"]) for one in listed] == [
        ("a", "2/128", 10, False),
        ("b", "2/128", 10, True),
    ]
    assert run_bertie("runs", "list", folder).stdout == run_bertie("runs", folder).stdout
    empty = run_bertie("runs", folder / "a" / "nothing")
    assert (empty.returncode, "no such folder" in empty.stderr) == (2, True)


def test_a_run_is_drawn_and_written(run_bertie: Run, fake_run: Make, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page, picture = tmp_path / "a.html", tmp_path / "a.png"
    done = run_bertie("runs", "show", fake_run("a"), "--against", "time", "--html", page, "--png", picture)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("a: bert 2/128, 10 of 10 steps, 100% done, 20 s, 50 tokens/s\n")
    assert "masked lm loss   · training   o held out   -- by frequency 7.5" in done.stdout
    assert "20 seconds" in done.stdout
    assert "tokens/s   · training" in done.stdout
    assert page.read_text().startswith("<!doctype html>")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_runs_are_compared(run_bertie: Run, fake_run: Make, tmp_path: Path) -> None:
    page = tmp_path / "both.html"
    done = run_bertie("runs", "compare", fake_run("a"), fake_run("b", rate=0.5, slope=0.8), "--html", page)
    assert done.returncode == 0, done.stderr
    assert "masked lm loss, held out   a a   b b" in done.stdout
    assert "options.optimizer.rate" in done.stdout and "time to 4.0000" in done.stdout
    assert "Options that differ" in page.read_text()


def test_runs_of_one_name_are_told_apart(run_bertie: Run, fake_run: Make, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, second = fake_run("a"), fake_run("other/a")
    shown = run_bertie("runs", "compare", first, second, "--height", 5).stdout
    assert f"a {first}" in shown and f"b {second}" in shown


def test_what_is_refused(run_bertie: Run, fake_run: Make, tmp_path: Path) -> None:
    run = fake_run("a")
    for words, message in [
        (["show", run, "--against", "tine"], "there is no --against 'tine'; did you mean 'time'"),
        (["compare", run], "one run cannot be compared"),
        (["show", tmp_path], "is not a run folder"),
        (["show", run, "--html", tmp_path / "nowhere" / "a.html"], "cannot be written"),
        (["show", run, "--png", tmp_path / "nowhere" / "a.png"], "cannot be written"),
    ]:
        done = run_bertie("runs", *words)
        assert (done.returncode, message in done.stderr.replace("\n", " ")) == (2, True), done.stderr
