"""Cosines of a model's vectors: a model folder and rows of two texts enter, answers leave as `bertie predict` has them.

`python -m experiments.cosines MODEL --rows FILE --out FILE`: for models that learned no task.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.labelled_sets import read_rows, write_rows

import bertie


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    rows, model = read_rows(options.rows), bertie.load(options.model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how little raw vectors say is to be measured
        texts, others = (model.encode([row[side] for row in rows], normalize=True) for side in ("text", "other"))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_rows(options.out, [{"cosine": float(cosine)} for cosine in (texts * others).sum(1)])


if __name__ == "__main__":
    main()
