"""What a run of bertie begins with and learns from, for another program: a corpus enters, a folder leaves.

`python -m experiments.trainer_data CORPUS --out FOLDER`: `model/`, the weights that `bertie pretrain` draws from this
seed; `train.npz`, the rows of its steps, masked, one step after another; `held-out.npz`, the rows to be measured on.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.contenders.instances import Instance, write_instances

from bertie.batch import Batch
from bertie.jobs.options.recipe_choice import choose_recipe
from bertie.jobs.text.corpus_jobs import open_corpus
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.train.budget import Steps
from bertie.train.pretraining.corpus_data import RunData, prepare
from bertie.train.pretraining.options import PretrainOptions

MODEL, TRAIN, HELD_OUT = "model", "train.npz", "held-out.npz"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of the rows to learn from, about")
    options = parser.parse_args(words)
    write(options.corpus, options.out, options.size, options.seed, options.tokens)


def write(folder: Path, out: Path, size: str, seed: int, num_tokens: int) -> None:
    corpus, tokenizer = open_corpus(folder, None)
    recipe = choose_recipe("bert", size, tokenizer.size)
    # Nothing else of a run decides its rows: the rest are the defaults, here and in the command.
    data = prepare(corpus, recipe, tokenizer, PretrainOptions(budget=Steps(steps=1), seed=seed))
    assert data.evaluation is not None
    out.mkdir(parents=True, exist_ok=True)
    Pretrained(Model.new(recipe, seed), tokenizer).save(out / MODEL)
    write_instances(out / HELD_OUT, rows_of(data.evaluation.batches))
    write_instances(out / TRAIN, rows_of(learned(data, num_tokens)))


def learned(data: RunData, num_tokens: int) -> Iterator[Batch]:
    place, count = data.start, 0
    while count < num_tokens:
        for batch in data.instances(place):
            count += len(batch.tensor("tokens"))
            yield batch
        place = data.data_schedule.after(place)


def rows_of(batches: Iterable[Batch]) -> list[Instance]:
    """All rows, each for itself."""
    rows: list[Instance] = []
    for batch in batches:
        tokens, masked = batch.ragged("tokens"), batch.ragged("masked")
        places = masked.with_values(masked.values - tokens.starts[tokens.row_ids[masked.values]])
        ragged = {name: batch.ragged(name) for name in ("tokens", "segments", "masked_targets")} | {"masked": places}
        columns = {name: [row.numpy() for row in field.rows()] for name, field in ragged.items()}
        columns["partner"] = list(batch.tensor("partner").numpy())
        rows += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows


if __name__ == "__main__":
    main()
