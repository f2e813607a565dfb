"""Splits a text file by document: most documents to learn from, one in so many to measure on, whatever the vocabulary.

`python -m experiments.text_split FILE --one-in 50 --out FOLDER`: writes train.jsonl.gz and held_out.jsonl.gz.
"""

import argparse
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

TRAIN, HELD_OUT = "train.jsonl.gz", "held_out.jsonl.gz"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--one-in", type=int, default=50)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    split(options.file, options.one_in, options.out)


def split(file: Path, one_in: int, folder: Path) -> None:
    """By a checksum of each line, so that it depends on neither order nor number of documents."""
    with gzip.open(file, "rb") as lines, _writing(folder / TRAIN) as train, _writing(folder / HELD_OUT) as held_out:
        for line in lines:
            (train if zlib.crc32(line) % one_in else held_out).write(line)


def _writing(path: Path) -> gzip.GzipFile:
    return gzip.GzipFile(path, "wb", compresslevel=3, mtime=0)


if __name__ == "__main__":
    main()
