"""`bertie plan`: the options of pretrain, figures of a trial, nothing written."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bertie.data.corpus import write_shards
from bertie.data.shards import CorpusDocument
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer
from bertie.train.planning import run_plan as planning
from bertie.train.planning.trial import try_run

Run = Callable[..., subprocess.CompletedProcess[str]]
OPTIONS = (
    *("--recipe", "bert", "--size", "mini", "--steps", "30", "--max-length", "32"),
    *("--batch-tokens", "128", "--eval-rows", "4", "--held-out", "10"),
)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """And trials in this process, as starting another takes its time."""
    monkeypatch.setattr(planning, "try_apart", try_run)
    tokenizer = wordpiece_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(20))])
    rng = np.random.default_rng(0)
    starts, words = np.arange(0, 30, 5, dtype=np.uint32), np.ones(30, bool)
    rows = [CorpusDocument(rng.integers(5, 25, 30).astype(np.uint16), starts, words, str(n)) for n in range(40)]
    write_shards(tmp_path / "corpus", rows, tokenizer)
    tokenizer.save(tmp_path / "corpus" / "tokenizer")
    return tmp_path / "corpus"


def test_a_plan_is_told_with_its_smaller_sizes(run_bertie: Run, corpus: Path, tmp_path: Path) -> None:
    given = ["plan", *OPTIONS, "--corpus", corpus, "--out", tmp_path / "run", "--probe-seconds", 0.1]
    done = run_bertie(*given)
    assert done.returncode == 0, done.stderr
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines()[:7])
    assert told["work"].startswith("30 steps")
    assert "parameters" in told["model"] and "tokens/s" in told["speed"] and "weights" in told["memory"]
    assert "4/256" in done.stdout and "tiny" in done.stdout and "base" not in done.stdout
    assert not (tmp_path / "run").exists()
    sizes = json.loads(run_bertie(*given, "--json").stdout)
    assert [one["size"] for one in sizes] == [None, "tiny"]
    assert sizes[0]["num_parameters"] > sizes[1]["num_parameters"]
    assert sizes[0]["flops_per_token"] > sizes[1]["flops_per_token"]
    assert sizes[0]["total_seconds"] == pytest.approx(sum(sizes[0]["seconds"].values()))


def test_students_and_parallel_text_are_planned(run_bertie: Run, corpus: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(corpus / "tokenizer")
    Pretrained(Model.new(bert(SIZES["tiny"], 25)), tokenizer).save(tmp_path / "teacher")
    given = ["plan", *OPTIONS[2:], "--corpus", corpus, "--probe-seconds", 0.1, "--json"]
    for wanted in (
        ("--recipe", "distilbert", "--teacher", tmp_path / "teacher"),
        ("--recipe", "xlm", "--translations", corpus),
    ):
        done = run_bertie(*given, *wanted)
        assert done.returncode == 0, done.stderr
        sizes = json.loads(done.stdout)
        assert [one["size"] for one in sizes] == [None, "tiny"]
    alone = run_bertie(*given, "--recipe", "distilbert")
    assert (alone.returncode, "--teacher" in alone.stderr) == (2, True)


def test_mistakes_are_those_of_pretrain(run_bertie: Run, corpus: Path) -> None:
    given = ["plan", *OPTIONS, "--corpus", corpus]
    both = run_bertie(*given, "--tokens", "5M")
    assert (both.returncode, "cannot both be given" in both.stderr) == (2, True)
    wrong = run_bertie(*given, "--schedule", "lineal")
    assert (wrong.returncode, "did you mean 'linear'" in wrong.stderr) == (2, True)


def test_it_has_every_option_of_pretrain(run_bertie: Run) -> None:
    def flags(verb: str) -> set[str]:
        lines = run_bertie(verb, "--help").stdout.splitlines()
        return {line.split()[0].rstrip(",") for line in lines if line.strip().startswith("--")}

    assert flags("pretrain") - flags("plan") == {"--out"}, "a plan writes nothing"
    assert run_bertie("plan", "--help").stdout.split("\n\n")[1].strip().startswith("Estimate what a run would take")
    assert {"--probe-seconds", "--smaller", "--json"} <= flags("plan")
