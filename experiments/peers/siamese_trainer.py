"""The trainer of `sentence-transformers`: rows of `task_sets` and a model folder enter, cosines of the test leave.

`python -m experiments.peers.siamese_trainer --rows FOLDER --base MODEL --out FOLDER`. Rows with a score learn it by
their cosine, rows of a text alone are found by themselves under another dropout. Learning rate, warm-up and decay
are those of `bertie finetune`; everything else that is not said on the command line is as the trainer has it. Answers
are lines as `bertie predict` writes them; beside them stands how many rows were learned in a second.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss, MultipleNegativesRankingLoss

WARMUP, DECAY = 0.1, 0.01

Row = dict[str, Any]


def data_and_loss(rows: Sequence[Row], model: Any) -> tuple[Any, Any]:
    texts = [row["text"] for row in rows]
    if "score" not in rows[0]:
        return Dataset.from_dict({"anchor": texts, "positive": texts}), MultipleNegativesRankingLoss(model)
    most = max(float(row["score"]) for row in rows)
    columns = {
        "sentence1": texts,
        "sentence2": [row["other"] for row in rows],
        "score": [float(row["score"]) / most for row in rows],
    }
    return Dataset.from_dict(columns), CosineSimilarityLoss(model)


def train(model: Any, rows: Sequence[Row], options: argparse.Namespace) -> float:
    """Seconds, as the trainer counts them."""
    data, loss = data_and_loss(rows, model)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=scratch,
            use_cpu=True,
            per_device_train_batch_size=options.batch,
            num_train_epochs=options.epochs,
            learning_rate=options.lr,
            warmup_steps=WARMUP,
            weight_decay=DECAY,
            seed=options.seed,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=loss)
        return float(trainer.train().metrics["train_runtime"])


def cosines(model: Any, rows: Sequence[Row]) -> np.ndarray:
    texts, others = (model.encode([row[side] for row in rows], normalize_embeddings=True) for side in ("text", "other"))
    found: np.ndarray = (texts * others).sum(1)
    return found


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--max-length", dest="length", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    model = SentenceTransformer(options.base, device="cpu")
    model.max_seq_length = options.length
    rows = read(options.rows / "train.jsonl")
    seconds = train(model, rows, options)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "answers.jsonl").open("w", encoding="utf-8") as stream:
        told = cosines(model.eval(), read(options.rows / "test.jsonl"))
        stream.writelines(json.dumps({"cosine": float(cosine)}) + "\n" for cosine in told)
    speed = {"examples_per_second": len(rows) * options.epochs / seconds}
    (options.out / "speed.json").write_text(json.dumps(speed) + "\n", "utf-8")


if __name__ == "__main__":
    main()
