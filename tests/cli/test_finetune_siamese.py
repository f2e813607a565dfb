"""`bertie finetune similarity --siamese`: rows of every kind in, a folder of vectors out."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertie
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
ANIMALS, THINGS = ["cat", "dog", "horse", "cow"], ["film", "book", "song", "play"]
QUICK = ("--epochs", 12, "--batch", 8, "--lr", 3e-3, "--max-length", 16)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "the", *ANIMALS, *THINGS]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder)
    assert tokenizer is not None
    recipe = bert(Size(depth=2, width=32, num_heads=2), tokenizer.size).changed({"encoder.initial_std": 0.1})
    Pretrained(Model.new(recipe), tokenizer).save(folder / "model")
    return folder / "model"


def pairs() -> list[dict[str, Any]]:
    """Alike are animals among themselves, and things."""
    rows = []
    for number in range(24):
        first, second = (ANIMALS, THINGS)[number % 2], (ANIMALS, THINGS)[number % 3 % 2]
        alike = first is second
        rows.append({"text": f"a {first[number % 4]}", "other": f"the {second[number % 3]}", "score": 4 * alike + 0.5})
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def test_scored_pairs_from_file_to_vectors(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    rows, out = write(tmp_path / "rows.jsonl", pairs()), tmp_path / "run"
    words = ("--base", base, "--train", rows, "--dev", rows, *QUICK, "--sizes", "16, 8", "--out", out)
    done = run_bertie("finetune", "similarity", "--siamese", *words)
    assert done.returncode == 0, done.stderr
    assert "cosine: the cosine of two texts should equal their score; scores from 0.5 to 4.5" in done.stderr
    assert "spearman" in done.stdout
    figures = json.loads(run_bertie("evaluate", out, "--data", rows, "--json").stdout)
    assert figures["spearman"] > 0.8 and set(figures) == {"spearman", "pearson", "spearman_16", "spearman_8"}
    alike = json.loads(run_bertie("predict", out, "a cat", "the cat").stdout)["cosine"]
    assert alike > json.loads(run_bertie("predict", out, "a play", "the cat").stdout)["cosine"]
    vector = json.loads(run_bertie("predict", out, "a cat").stdout)["vector"]
    model = bertie.load(out)
    np.testing.assert_allclose(model.encode("a cat"), vector, atol=1e-6)
    assert (out / "model" / "modules.json").exists() and not model.makes_raw_vectors
    (tmp_path / "texts.txt").write_text("a cat\nthe film\n")
    done = run_bertie("embed", out, tmp_path / "texts.txt", "--out", tmp_path / "v.npy", "--size", 8)
    assert done.returncode == 0 and "not trained to compare" not in done.stderr
    assert np.load(tmp_path / "v.npy").shape == (2, 8)


@pytest.mark.parametrize(
    ("rows", "flags", "told"),
    [
        (without(pairs(), "score"), (), "ranking: "),
        ([{**row, "negative": "the film"} for row in without(pairs(), "score")], ("--loss", "triplet"), "triplet: "),
        (pairs(), ("--loss", "cosent"), "cosent: "),
        ([{**row, "score": None, "label": "ny"[row["score"] > 1]} for row in pairs()], (), "2 labels: n, y"),
    ],
)
def test_other_kinds_of_rows(
    base: Path, run_bertie: Run, tmp_path: Path, rows: Any, flags: tuple[str, ...], told: str
) -> None:
    kept = write(
        tmp_path / "rows.jsonl", [{key: cell for key, cell in row.items() if cell is not None} for row in rows]
    )
    scored = write(tmp_path / "dev.jsonl", pairs())
    words = ("--base", base, "--train", kept, "--dev", scored, "--epochs", 1, "--batch", 8, "--out", tmp_path / "run")
    done = run_bertie("finetune", "similarity", "--siamese", *flags, *words)
    assert done.returncode == 0, done.stderr
    assert told in done.stderr and "spearman" in done.stdout
    figures = json.loads(run_bertie("evaluate", tmp_path / "run", "--data", kept, "--json").stdout)
    assert figures.pop("f1_positive", None) == ("y" if "labels" in told else None), "the label that f1 is about"
    assert figures and all(np.isfinite(list(figures.values())))


def test_who_learned_scores_is_measured_on_pairs(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    scored, out = write(tmp_path / "scored.jsonl", pairs()), tmp_path / "run"
    asked = "".join(f"a {word}\tthe {word}\n" for word in (*ANIMALS, *THINGS))
    (tmp_path / "asked.tsv").write_text("text\tother\n" + asked)
    words = ("--base", base, "--train", scored, "--dev", tmp_path / "asked.tsv", "--epochs", 1, "--out", out)
    done = run_bertie("finetune", "similarity", "--siamese", *words)
    assert done.returncode == 0 and "mrr" in done.stdout, done.stderr
    assert np.isfinite(json.loads((out / "summary.json").read_text())["evaluation"]["loss"])
    done = run_bertie("evaluate", out, "--data", tmp_path / "asked.tsv", "--json")
    assert done.returncode == 0 and set(json.loads(done.stdout)) == {"mrr", "accuracy_at_1"}, done.stderr
    assert "spearman" in json.loads(run_bertie("evaluate", out, "--data", scored, "--json").stdout)
    without_score = write(tmp_path / "train.jsonl", [*pairs(), *without(pairs(), "score")])
    given = ("--base", base, "--train", without_score, "--dev", tmp_path / "asked.tsv", "--out", tmp_path / "no")
    done = run_bertie("finetune", "similarity", "--siamese", *given)
    assert done.returncode == 2 and "'score' is empty" in done.stderr, "what is learned from still needs a score"


def test_labels_that_were_not_learned(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    rows, out = without(pairs(), "score"), tmp_path / "run"
    train = write(tmp_path / "train.jsonl", rows)
    mixed = write(tmp_path / "mixed.jsonl", [{**row, "label": number % 2} for number, row in enumerate(rows)])
    alike = write(tmp_path / "alike.jsonl", [{**row, "label": 1} for row in rows])
    given = ("--base", base, "--train", train, "--epochs", 1, "--batch", 8, "--out", out)
    done = run_bertie("finetune", "similarity", "--siamese", *given, "--dev", mixed)
    assert done.returncode == 2 and "the rows have '0' and '1'" in done.stderr and not out.exists()
    done = run_bertie("finetune", "similarity", "--siamese", *given, "--dev", alike)
    told = f"{alike}: the column 'label' is ignored: it was not learned"
    assert done.returncode == 0 and told in done.stderr, done.stderr
    done = run_bertie("evaluate", out, "--data", mixed)
    assert done.returncode == 2 and "would count as right answers" in done.stderr and "mrr" not in done.stdout
    done = run_bertie("evaluate", out, "--data", mixed, "--column", "score=label", "--json")
    assert done.returncode == 0 and "spearman" in json.loads(done.stdout), done.stderr
    done = run_bertie("evaluate", out, "--data", alike)
    assert done.returncode == 0 and told in done.stderr and "mrr" in done.stdout


def test_third_texts_may_be_empty_in_tables(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    lines = [f"a {word}\tthe {word}\t{'' if word == 'cow' else 'a film'}\n" for word in (*ANIMALS, *THINGS)]
    (tmp_path / "rows.tsv").write_text("text\tother\tnegative\n" + "".join(lines))
    rows, out = tmp_path / "rows.tsv", tmp_path / "run"
    words = ("--base", base, "--train", rows, "--dev", rows, "--epochs", 1, "--batch", 4, "--out", out)
    done = run_bertie("finetune", "similarity", "--siamese", *words)
    assert done.returncode == 0 and "mrr" in done.stdout, done.stderr
    assert "the column 'negative' is ignored: some rows have no third text" in done.stderr


def test_sizes_are_refused_before_all_rows_are_read(
    base: Path, run_bertie: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write(tmp_path / "rows.jsonl", pairs())
    monkeypatch.setattr("bertie.jobs.finetuning.finetune.PreparedTask.of", lambda *given: pytest.fail("rows are read"))
    words = ("--siamese", "--sizes", 64, "--base", base, "--train", rows, "--out", tmp_path / "run")
    done = run_bertie("finetune", "similarity", *words)
    assert done.returncode == 2 and "32 is the largest" in done.stderr


def test_plain_lines_are_enough(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("".join(f"a {word} the {other}\n" for word in ANIMALS for other in THINGS))
    dev = write(tmp_path / "dev.jsonl", pairs())
    words = ("--base", base, "--train", tmp_path / "texts.txt", "--epochs", 1, "--batch", 8)
    done = run_bertie("finetune", "similarity", "--siamese", *words, "--dev", dev, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "simcse: a text should be nearest to itself" in done.stderr and "spearman" in done.stdout
    done = run_bertie("evaluate", tmp_path / "run", "--data", tmp_path / "texts.txt")
    assert done.returncode == 2 and "single texts cannot measure how good vectors are" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("similarity", "--loss", "cosine"), "or leave out"),
        (("classify", "--siamese"), "--siamese is an option of similarity, not of classify"),
        (("similarity", "--siamese", "--loss", "cosin"), "did you mean 'cosine'?"),
        (("similarity", "--siamese", "--sizes", "a"), "like 256,128,64"),
        (("similarity", "--siamese", "--sizes", "64"), "vectors have 32 numbers, not 64; 32 is the largest"),
        (("similarity", "--siamese", "--loss", "triplet"), "no row has a negative"),
    ],
)
def test_mistakes_are_one_sentence(
    base: Path, run_bertie: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    rows = write(tmp_path / "rows.jsonl", pairs())
    done = run_bertie("finetune", *words, "--base", base, "--train", rows, "--out", tmp_path / "run")
    assert done.returncode == 2 and told in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_label_may_be_named_a_score(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.jsonl", [{**row, "label": row["score"], "score": None} for row in pairs()])
    words = ("--base", base, "--train", rows, "--column", "score=label", "--epochs", 1, "--out", tmp_path / "run")
    done = run_bertie("finetune", "similarity", "--siamese", *words)
    assert done.returncode == 0 and "scores from 0.5 to 4.5" in done.stderr, done.stderr
