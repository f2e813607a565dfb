"""What `bertie finetune` does without a file of held-out rows, without a vocabulary, and without a step."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import bertie
from bertie.errors import SpecError
from bertie.jobs.finetuning.finetune import FinetuneJob
from bertie.jobs.finetuning.finetune_options import Share
from bertie.text.tokenizers.tokenizer import load_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
NEW = ("finetune", "classify", "--recipe", "bert", "--size", "tiny", "--max-length", 16, "--batch", 8)


def reviews(path: Path, count: int = 40) -> Path:
    lines = [
        f"the film {n} was {'good' if n % 2 else 'bad'}\t{'pos' if n % 2 else 'neg'}\t{n % 8}" for n in range(count)
    ]
    path.write_text("sentence\tlabel\twriter\n" + "\n".join(lines) + "\n")
    return path


def test_a_share_of_the_rows_is_held_out_and_a_vocabulary_is_trained(run_bertie: Run, tmp_path: Path) -> None:
    train, out = reviews(tmp_path / "train.tsv"), tmp_path / "out"
    words = (*NEW, "--train", train, "--epochs", 1, "--dev", "20%")
    done = run_bertie(*words, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "8 of 40 rows (20.0%) are held out" in done.stderr
    assert "vocabulary of" in done.stderr and "32 rows" in done.stderr and "--tokenizer takes" in done.stderr
    card = json.loads((out / "data_card.json").read_text())
    assert card["train"]["rows"] == 32 and card["dev"]["rows"] == 8
    assert load_tokenizer(out / "model") is not None
    assert "finished before" in run_bertie(*words, "--out", out).stderr
    other = run_bertie(*words[:-1], "30%", "--out", out)
    assert other.returncode == 2 and "started with other options" in other.stderr
    assert "one share, or files" in run_bertie(*words, "--dev", "30%", "--out", out).stderr
    assert run_bertie(*words, "--out", tmp_path / "again").returncode == 0
    weights = [(folder / "model" / "model.safetensors").read_bytes() for folder in (out, tmp_path / "again")]
    assert weights[0] == weights[1]


def test_groups_stay_together(run_bertie: Run, tmp_path: Path) -> None:
    train = reviews(tmp_path / "train.tsv")
    words = (*NEW, "--train", train, "--epochs", 0, "--group", "writer")
    done = run_bertie(*words, "--dev", "25%", "--out", tmp_path / "out")
    assert "10 of 40 rows (25.0%) are held out, which are 2 of 8 groups by 'writer'" in done.stderr
    assert "--group needs --dev" in run_bertie(*words, "--out", tmp_path / "a").stderr
    assert "--dev 10%" in run_bertie(*words, "--dev", train, "--out", tmp_path / "b").stderr


def test_a_share_is_suggested(run_bertie: Run, tmp_path: Path) -> None:
    done = run_bertie(*NEW, "--train", reviews(tmp_path / "train.tsv"), "--epochs", 0, "--out", tmp_path / "out")
    assert done.returncode == 0 and "--dev 10% holds out" in done.stderr


def test_no_epochs_measure_the_model_as_it_is(run_bertie: Run, tmp_path: Path) -> None:
    train = reviews(tmp_path / "train.tsv")
    run = bertie.finetune("classify", recipe="bert", size="tiny", train=train, dev=0.2, epochs=2, max_length=16)
    options = ("--base", run.folder, "--train", train, "--dev", train, "--epochs", 0, "--max-length", 16)
    done = run_bertie("finetune", "classify", *options, "--out", tmp_path / "same", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = run.evaluate(train).metrics
    assert found["steps"] == 0 and found["evaluation"]["accuracy"] == pytest.approx(expected["accuracy"])
    assert "nothing is trained: the model is measured as it is\n" in done.stderr
    assert (tmp_path / "same" / "report.html").exists() and (tmp_path / "same" / "model").is_dir()
    assert "runs" not in run_bertie("runs", "show", tmp_path / "same").stderr


@pytest.mark.parametrize(("given", "share"), [("10%", 0.1), (0.1, 0.1), (".25", 0.25), ("12.5 %", 0.125)])
def test_shares_as_people_write_them(given: object, share: float) -> None:
    job = FinetuneJob.of(task="classify", train="x", dev=given)
    assert job.data.dev == Share(share=share)
    assert FinetuneJob.from_options({**job.given(), "task": "classify"}).data.dev == Share(share=share)


@pytest.mark.parametrize("given", ["0%", "100%", "-5%", "250%", 1, 0, 1.5, float("nan"), "0.0"])
def test_other_shares_are_refused(given: object) -> None:
    with pytest.raises(SpecError, match=r"`dev`: .* is not a share of the training rows"):
        FinetuneJob.of(task="classify", train="x", dev=given)


def test_a_file_may_have_such_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reviews(tmp_path / "10%")
    assert FinetuneJob.of(task="classify", train="x", dev="10%").data.dev == (Path("10%"),)
