"""`bertie whiten`: a folder and texts in, a folder out, and a word on what was done."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bertie
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    words = [f"w{number}" for number in range(40)]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *words)))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer is not None
    recipe = bert(Size(depth=2, width=16, num_heads=2), tokenizer.size).changed({"encoder.initial_std": 0.2})
    Pretrained(Model.new(recipe), tokenizer).save(tmp_path / "model")
    return tmp_path / "model"


def test_from_texts_to_a_folder(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    texts = [" ".join(f"w{(number * step) % 40}" for step in range(1, 5)) for number in range(60)]
    (tmp_path / "texts.txt").write_text("\n\n".join(texts) + "\n" + "w1 " * 600 + "\n")
    done = run_bertie("whiten", base, tmp_path / "texts.txt", "--out", tmp_path / "white", "--size", 6)
    assert done.returncode == 0, done.stderr
    assert "vectors of 6 numbers, whitened with 61 texts" in done.stdout
    assert "1 of 61 texts were too long" in done.stderr and "59 empty texts are left out" in done.stderr
    found = bertie.load(tmp_path / "white")
    vectors = found.encode(texts)
    assert not found.makes_raw_vectors and vectors.shape == (60, 6)
    cosines = (vectors @ vectors.T)[np.triu_indices(60, 1)]
    plain = bertie.load(base).encode(texts, normalize=True)
    assert cosines.mean() < 0.2 < (plain @ plain.T)[np.triu_indices(60, 1)].mean()


def test_the_model_itself_is_not_overwritten(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("w1\n")
    for folder in (base, base.parent):  # a run folder stands for the model in it
        done = run_bertie("whiten", folder, tmp_path / "texts.txt", "--out", base)
        assert done.returncode == 2 and "the output folder is not empty; give a new folder as --out" in done.stderr
    assert not (base / "modules.json").exists()


def test_too_few_texts_are_one_sentence(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("w1\nw2\nw3\n")
    done = run_bertie("whiten", base, tmp_path / "texts.txt", "--out", tmp_path / "white")
    assert done.returncode == 2 and "3 texts determine 2 directions, but 15 are needed" in done.stderr
    assert not (tmp_path / "white").exists()


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    lines = [" ".join(f"w{(number * step) % 40}" for step in range(1, 5)) for number in range(40)]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n")
    return tmp_path / "texts.txt"


def test_folders_of_others_stay(base: Path, texts: Path, run_bertie: Run, tmp_path: Path) -> None:
    (tmp_path / "white.part").mkdir()
    (tmp_path / "white.part" / "letter.txt").write_text("mine")
    before = set(tmp_path.iterdir())
    done = run_bertie("whiten", base, texts, "--out", tmp_path / "white", "--size", 6)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "white.part" / "letter.txt").read_text() == "mine"
    assert set(tmp_path.iterdir()) - before == {tmp_path / "white"}
    assert (tmp_path / "white").stat().st_mode == (tmp_path / "white.part").stat().st_mode


def test_what_fails_leaves_nothing(
    base: Path, texts: Path, run_bertie: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise OSError(28, "No space left on device")

    before = set(tmp_path.iterdir())
    monkeypatch.setattr("bertie.models.folder.saving.take_place", fail)
    done = run_bertie("whiten", base, texts, "--out", tmp_path / "white", "--size", 6)
    assert done.returncode == 2 and "cannot be written (No space left on device)" in " ".join(done.stderr.split())
    assert set(tmp_path.iterdir()) == before


def test_an_empty_folder_is_filled_where_one_stands(
    base: Path, texts: Path, run_bertie: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    number = (tmp_path / "here").stat().st_ino
    monkeypatch.chdir(tmp_path / "here")
    done = run_bertie("whiten", base, texts, "--out", ".", "--size", 6)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here").stat().st_ino == number, "a shell stands in it"
    assert bertie.load(tmp_path / "here").encode("w1 w2").shape == (6,)
