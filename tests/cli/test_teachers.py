"""Teachers and translations of `bertie pretrain`: who needs them, what is written down of them, what is refused."""

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertie
from bertie.data.corpus import write_shards
from bertie.data.shards import CorpusDocument
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
TOKENIZER = wordpiece_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(40))])
SMALL = [
    *("--steps", "2", "--max-length", "32", "--batch-tokens", "256"),
    *("--held-out", "10", "--eval-rows", "8", "--save-every", "50", "--precision", "float32"),
]


def write(folder: Path, seed: int, num_documents: int = 40) -> Path:
    rng = np.random.default_rng(seed)
    documents = [
        CorpusDocument(rng.integers(5, 45, 12), np.array([0, 6]), np.ones(12, bool), str(number))
        for number in range(num_documents)
    ]
    write_shards(folder, documents, TOKENIZER)
    TOKENIZER.save(folder / "tokenizer")
    return folder


def sized(given: tuple[object, ...]) -> tuple[object, ...]:
    """A recipe has a size to choose, a model that is there already has one."""
    return (*given, "--size", "tiny") if "--recipe" in given else given


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("corpus") / "one", 0)


@pytest.fixture(scope="module")
def translations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("corpus") / "two", 1)


@pytest.fixture
def train(run_bertie: Run, corpus: Path, tmp_path: Path) -> Callable[..., Path]:
    """`train("--recipe", "bert", name="teacher")`: the run folder of a tiny run."""

    def run(*given: object, name: str = "run") -> Path:
        done = run_bertie("pretrain", "--corpus", corpus, "--out", tmp_path / name, *SMALL, *sized(given))
        assert done.returncode == 0, done.stderr
        return tmp_path / name

    return run


@pytest.fixture
def refused(run_bertie: Run, corpus: Path, tmp_path: Path) -> Callable[..., str]:
    """What is said where a run is refused, which makes no folder."""

    def run(*given: object, on: Path = corpus) -> str:
        done = run_bertie("pretrain", "--corpus", on, "--out", tmp_path / "refused", *SMALL, *sized(given))
        assert done.returncode == 2
        assert not (tmp_path / "refused").exists()
        return done.stderr

    return run


def options_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "options.json").read_text())


def test_a_student_learns_from_the_teacher_of_a_folder(train: Callable[..., Path], run_bertie: Run) -> None:
    teacher = train("--recipe", "bert", name="teacher") / "model"
    out = train("--recipe", "distilbert", "--teacher", teacher)
    assert options_of(out)["teacher"] == bertie.load(teacher).digest
    assert "teacher" not in options_of(teacher.parent)
    assert tomllib.loads((out / "config.toml").read_text())["model"]["teacher"] == str(teacher)
    student = bertie.load(out)
    assert student.recipe.name == "distilbert" and student.recipe.encoder.stack.depth == 1
    assert len(student.fill("w1 [MASK] w3", top=2)) == 2
    steps = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert {"masked_lm", "soft_labels", "state_cosine"} <= steps[1].keys()
    # Another teacher is another run.
    other = train("--recipe", "bert", "--seed", 5, name="other") / "model"
    done = run_bertie("pretrain", "--config", out / "config.toml", "--out", out, "--teacher", other)
    assert (done.returncode, "teacher" in done.stderr) == (2, True)
    # A student of before goes on from where it was, with whom it may learn from.
    again = train("--base", out / "model", "--teacher", other, name="again")
    assert options_of(again)["from"] == student.digest


def test_who_needs_a_teacher_and_who_does_not(refused: Callable[..., str], train: Callable[..., Path]) -> None:
    assert "the recipe 'distilbert' learns from a teacher; give a model folder as --teacher" in refused(
        "--recipe", "distilbert"
    )
    teacher = train("--recipe", "bert", name="teacher") / "model"
    assert "the recipe 'bert' does not learn from a teacher; drop --teacher" in refused(
        "--recipe", "bert", "--teacher", teacher
    )


def test_parallel_text_is_learned_from(train: Callable[..., Path], translations: Path, corpus: Path) -> None:
    out = train("--recipe", "xlm", "--translations", translations)
    assert options_of(out)["corpus"] != options_of(train("--recipe", "bert", name="alone"))["corpus"]
    assert tomllib.loads((out / "config.toml").read_text())["data"]["translations"] == str(translations)
    assert bertie.load(out).recipe.name == "xlm"


def test_translations_that_do_not_fit_are_refused(
    refused: Callable[..., str], run_bertie: Run, corpus: Path, translations: Path, tmp_path: Path
) -> None:
    assert "learns from parallel text; give" in refused("--recipe", "xlm")
    assert "learns from one text" in refused("--recipe", "bert", "--translations", translations)
    short = write(tmp_path / "short", 1, num_documents=30)
    assert "one side of the parallel text has" in refused("--recipe", "xlm", "--translations", short)
    frozen = tmp_path / "frozen"
    given = ("--recipe", "bert", "--max-length", 32, "--held-out", 10)
    assert run_bertie("corpus", "freeze", corpus, *given, "--out", frozen).returncode == 0
    told = refused("--recipe", "bert", "--translations", translations, on=frozen)
    assert "a frozen corpus has no translations beside it" in told
