"""The peer that trains siamese encoders: what it makes of rows, and what it leaves."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.labelled_sets import write_rows

pytest.importorskip("datasets", reason="the peer needs it")
pytest.importorskip("sentence_transformers", reason="the peer needs it")

from experiments.peers import siamese_trainer
from experiments.peers.siamese_trainer import cosines, data_and_loss

SCORED = [{"text": f"text {number}", "other": f"other {number}", "score": f"{number}.0"} for number in range(6)]


def test_scores_are_from_0_to_1_and_texts_alone_are_their_own_pairs() -> None:
    data, loss = data_and_loss(SCORED, None)
    assert data["score"][-1] == 1.0 and data.column_names == ["sentence1", "sentence2", "score"]
    assert type(loss).__name__ == "CosineSimilarityLoss"
    data, loss = data_and_loss([{"text": row["text"]} for row in SCORED], None)
    assert list(data["anchor"]) == list(data["positive"]) and type(loss).__name__ == "MultipleNegativesRankingLoss"


def test_cosines_are_those_of_directions(minilm: Path) -> None:
    from sentence_transformers import SentenceTransformer

    found = cosines(SentenceTransformer(str(minilm), device="cpu"), [{"text": "a cat", "other": "a cat"}, *SCORED])
    assert found[0] == pytest.approx(1.0, abs=1e-5) and (np.abs(found) <= 1 + 1e-5).all()


@pytest.mark.slow
def test_it_trains_and_answers(minilm: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="the trainer needs it")
    for part in ("train", "test"):
        write_rows(tmp_path / f"{part}.jsonl", SCORED)
    given = ["--rows", str(tmp_path), "--base", str(minilm), "--batch", "3", "--out", str(tmp_path / "out")]
    siamese_trainer.main(given)
    assert len((tmp_path / "out" / "answers.jsonl").read_text().splitlines()) == len(SCORED)
    assert json.loads((tmp_path / "out" / "speed.json").read_text())["examples_per_second"] > 0
