"""Trained siamese encoders in `sentence-transformers`: the same vectors, also of shorter sizes."""

import json
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
from bertie.models.task_recipe import task_recipe
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.task import Values
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

WORDS = ["good", "bad", "film", "food", "a", "the", "was", "very", "cat", "dog", "sat", "purrs", "barks", "?", "."]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
TEXTS = ["a good film.", "the dog barks", "very bad food was the food?", "", "cat " * 40]
SCORED: list[Values] = [{"text": "a", "other": "b", "score": score} for score in (0, 5)]
LABELLED: list[Values] = [{"text": "a", "other": "b", "label": label} for label in "xy"]


def trained(task: Siamese, length: int) -> Pretrained:
    recipe = bert(Size(depth=2, width=32, num_heads=4), len(PIECES)).changed({"encoder.initial_std": 0.2})
    card = {"length": length}
    return Pretrained(Model.new(task_recipe(recipe, task)), wordpiece_tokenizer(PIECES), card=card)


@pytest.mark.parametrize("rows", [SCORED, LABELLED], ids=["scored", "labelled"])
@pytest.mark.parametrize("pooling", ["first", "mean", "max"])
@pytest.mark.filterwarnings("ignore")
def test_a_folder_gives_the_same_vectors_there(pooling: Any, rows: list[Values], tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    ours = trained(Siamese(pooling=pooling).fitted(rows), 12)
    ours.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), device="cpu")
    assert theirs.max_seq_length == 12
    vectors = ours.encode_report(TEXTS).vectors
    np.testing.assert_allclose(theirs.encode(TEXTS), vectors, atol=1e-6)
    again = bertie.load(tmp_path)
    assert again.recipe == ours.recipe and again.settings == ours.settings
    np.testing.assert_array_equal(again.encode_report(TEXTS).vectors, vectors)
    cut = theirs.encode(TEXTS, truncate_dim=8, normalize_embeddings=True)
    np.testing.assert_allclose(cut, ours.encode_report(TEXTS, size=8).vectors, atol=1e-6)


@pytest.mark.slow
def test_real_weights_learn_and_open_there(
    minilm: Path, shared: Path, run_bertie: Callable[..., Any], tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    with (shared / "data/stsb/sts-dev.tsv").open(encoding="utf-8") as file:
        cells = [line.rstrip("\n").split("\t") for line in file][:64]
    rows = [{"text": row[5], "other": row[6], "score": row[4]} for row in cells]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = ("--base", minilm, "--train", tmp_path / "rows.jsonl", "--epochs", 1, "--batch", 16, "--sizes", "128")
    done = run_bertie("finetune", "similarity", "--siamese", *words, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    texts = [row["text"] for row in rows]
    ours = bertie.load(tmp_path / "run").encode(texts)
    theirs = SentenceTransformer(str(tmp_path / "run" / "model"), device="cpu").encode(texts)
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    assert np.abs(ours - bertie.load(minilm).encode(texts)).max() > 1e-3, "it learned"
