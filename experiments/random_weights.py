"""The same architecture with nothing learned: a model folder and a seed enter, a folder with random weights leaves.

`python -m experiments.random_weights MODEL --seed 0 --out FOLDER`: the tokenizer stays.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import bertie
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    learned = bertie.load(options.model)
    fresh = Model.new(learned.recipe, options.seed, learned.model.vocabulary)
    Pretrained(fresh, learned.tokenizer).save(options.out)


if __name__ == "__main__":
    main()
