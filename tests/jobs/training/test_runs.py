"""`bertie runs`: listed, drawn, compared, as pages and pictures."""

import json
import subprocess
from collections.abc import Callable, Mapping
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


def finetuned(folder: Path, *objectives: Mapping[str, object], evaluations: list[dict[str, object]]) -> None:
    options = json.loads((folder / "options.json").read_text())
    options["recipe"]["objectives"] = list(objectives)
    (folder / "options.json").write_text(json.dumps(options))
    place = {"tokens": 9, "seconds": 1.0, "tokens_per_second": 9.0}
    records = [{"event": "step", "step": 1, "loss": 0.5, **place}]
    records += [{"event": "evaluation", "step": 1, **one} for one in evaluations]
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def test_the_list_shows_what_decides(run_bertie: Run, fake_run: Make) -> None:
    """The metric of a task, of the model that was kept, and the loss that pre-training reduces."""
    folder = fake_run("a-pretraining").parent
    evaluations: list[dict[str, object]] = [{"loss": 0.6, "f1": 0.75, "accuracy": 0.9}, {"loss": 0.5, "f1": 0.5}]
    evaluations = [{"loss": 0.7, "f1": float("nan")}, *evaluations]
    tag, classify = {"kind": "tag", "tags": ["O", "B-X"]}, {"kind": "classify", "labels": ["a", "b"]}
    finetuned(fake_run("b-tagging"), tag, evaluations=evaluations)
    both: dict[str, object] = {"loss": 0.6, "classify.accuracy": 0.5, "tag.f1": 0.25}
    finetuned(fake_run("c-both"), classify, tag, evaluations=[both])
    finetuned(fake_run("d-plugin"), {"kind": "stars"}, evaluations=[{"loss": 0.625, "far_off": 1.0}])
    finetuned(fake_run("e-nothing"), classify, evaluations=[])
    listed = json.loads(run_bertie("runs", folder, "--json").stdout)
    assert [one["held_out"] for one in listed] == [
        {"masked_lm": 4.0},
        {"f1": 0.75},
        {"classify.accuracy": 0.5, "tag.f1": 0.25},
        {"loss": 0.625},
        {},
    ]
    lines = [line.rstrip() for line in run_bertie("runs", folder).stdout.splitlines()]
    assert any(line.endswith("  masked lm loss 4.0000") for line in lines)
    assert any("b-tagging" in line and line.endswith("  f1 0.7500") for line in lines)
    assert any("e-nothing" in line and line.endswith("  training loss 0.5000") for line in lines)
    assert any(line.endswith(" classify.accuracy 50.0%") for line in lines) and max(map(len, lines)) <= 80
    shown = run_bertie("runs", "show", folder / "b-tagging").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "f1   o held out" in shown and "f1 loss" not in shown


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
        (["show", run, "--html", run / "log.jsonl" / "a.html"], "is a file, so nothing can be written into it"),
        (["show", run, "--png", run], "is a folder; name a file in it as --png"),
        (["compare", run, run, "--html", run / "log.jsonl"], "the file exists already; choose another --html"),
    ]:
        done = run_bertie("runs", *words)
        assert (done.returncode, message in done.stderr.replace("\n", " ")) == (2, True), done.stderr
