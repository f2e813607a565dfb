"""Real text of mixed length: the folder with data sets enters, a fixed draw of texts leaves.

A third each are STS-B sentences, SST-2 phrases and Wikipedia paragraphs with their headings: 3 tokens and up.
"""

import csv
import gzip
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

from bertie.errors import InputError

SEED = 20
# Enough articles to draw from; reading all of them takes longer than a round.
NUM_ARTICLES = 300


def mixed_texts(data: Path, num_texts: int) -> list[str]:
    """The same texts in the same order at every call."""
    rng = random.Random(SEED)
    sources = [list(dict.fromkeys(read(data))) for read in (_stsb, _sst2, _wiki)]
    shares = [num_texts // 3 + (source < num_texts % 3) for source in range(3)]
    for share, texts in zip(shares, sources, strict=True):
        if share > len(texts):
            raise InputError(f"only {3 * len(texts):,} texts can be drawn, not {num_texts:,}", where=str(data))
    drawn = [text for share, texts in zip(shares, sources, strict=True) for text in rng.sample(texts, share)]
    rng.shuffle(drawn)
    return drawn


def _stsb(data: Path) -> Iterator[str]:
    with _existing(data / "stsb" / "sts-train.tsv").open(encoding="utf-8", newline="") as stream:
        for row in csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield from row[5:7]


def _sst2(data: Path) -> Iterator[str]:
    with _existing(data / "sst2" / "train_full.tsv").open(encoding="utf-8") as stream:
        for line in itertools.islice(stream, 1, None):
            yield line.rsplit("\t", 1)[0].strip()


def _wiki(data: Path) -> Iterator[str]:
    with gzip.open(_existing(data / "en_wiki.jsonl.gz"), "rt", encoding="utf-8") as stream:
        for line in itertools.islice(stream, NUM_ARTICLES):
            yield from (paragraph for paragraph in json.loads(line)["text"].split("\n") if paragraph.strip())


def write_articles(data: Path, num_articles: int, out: Path) -> None:
    """The first articles of en_wiki, as JSON lines."""
    with gzip.open(_existing(data / "en_wiki.jsonl.gz"), "rt", encoding="utf-8") as stream:
        out.write_text("".join(itertools.islice(stream, num_articles)), encoding="utf-8")


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise InputError(
            "the benchmark's text is missing", where=str(file), hint="give its folder with --data or $BERTIE_SHARED"
        )
    return file
