"""One measure for all masked models, whatever their vocabulary and their own masks: held-out nats per character.

`python -m experiments.nats_per_character RUN TEXT --out FILE`: the curve of a run over its checkpoints.

Held-out text is cut into rows of at most `LONGEST` characters, and 15% of the words of each row are drawn from the text
itself: single ideographs, runs of letters and digits, and single other marks are words. All pieces of a drawn word are
masked, and nothing else is. The negative log-likelihoods of these pieces, each predicted from the same masked row, are
summed and divided by the number of characters of the drawn words. So every model predicts the same characters from the
same others. What is left of a difference between vocabularies: the number of pieces of a drawn word is seen, and its
pieces do not see each other.
"""

import argparse
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import bertie
from bertie.batch import Places, Sample
from bertie.data.samples.sample_protocols import generator
from bertie.errors import TokenizerError
from bertie.models.model import Model
from bertie.objectives.loss_report import LossReport
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.folder.checkpoint import Checkpoints
from bertie.train.folder.log import standing_records
from bertie.train.folder.run_folder import CHECKPOINTS
from bertie.train.instances import split_rows

RATE, LONGEST, NUM_ROWS, MICRO_TOKENS = 0.15, 400, 800, 4096
SHARES = (1 / 8, 1 / 4, 1 / 2, 1)  # of a run's tokens, where its curve is measured
IDEOGRAPHS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W_{IDEOGRAPHS}]+|[^\s]")
IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
WIDTH = 4  # characters of other scripts that an ideograph counts for, so that all rows are of about as many pieces


class MaskedText(NamedTuple):
    text: str
    masked: tuple[tuple[int, int], ...]  # first and last + 1 character of each drawn word, in order

    @property
    def num_characters(self) -> int:
        return sum(end - start for start, end in self.masked)


class Score(NamedTuple):
    nats: float
    num_characters: int
    num_pieces: int
    num_unknown: int  # pieces among them that the vocabulary has no name for: cheap to predict, and worth nothing

    @property
    def per_character(self) -> float:
        return self.nats / self.num_characters


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=NUM_ROWS)
    options = parser.parse_args(words)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found = measure_run(options.run, masked_texts(options.text, options.rows))
    options.out.write_text(json.dumps(found) + "\n", "utf-8")


def measure_run(run: Path, texts: Sequence[MaskedText]) -> dict[str, object]:
    """The checkpoints nearest to `SHARES` of the run as [tokens, nats per character], and the last in detail."""
    loaded = bertie.load(run)
    assert loaded.tokenizer is not None
    checkpoints = Checkpoints(run / CHECKPOINTS)
    tokens = {record["step"]: record["tokens"] for record in standing_records(run) if record["event"] == "step"}
    known, end = checkpoints.steps(), max(tokens.values())
    steps = sorted({min(known, key=lambda step: abs(tokens[step] - share * end)) for share in SHARES})
    points = []
    for step in steps:
        checkpoints.load_weights(step, loaded.model)
        score = measure(loaded.model, loaded.tokenizer, texts)
        points.append([tokens[step], score.per_character])
    return {"points": points, **score._asdict()}


def measure(model: Model, tokenizer: Tokenizer, texts: Sequence[MaskedText]) -> Score:
    rows = [masked_row(tokenizer, text) for text in texts]
    (objective,) = (one for one in model.recipe.objectives if one.kind == "masked-lm")
    model.eval()
    with torch.inference_mode():
        head = model.heads[objective.name]
        reports = (objective.loss(head, model.encoder, batch) for batch in split_rows(rows, MICRO_TOKENS))
        report = sum(reports, LossReport())
    targets = np.concatenate([np.asarray(row["masked_targets"]) for row in rows])
    unknown = 0 if tokenizer.special.unk is None else int((targets == tokenizer.special.unk).sum())
    characters = sum(text.num_characters for text in texts)
    return Score(float(report.losses["masked_lm"].sum), characters, len(targets), unknown)


def masked_row(tokenizer: Tokenizer, text: MaskedText) -> Sample:
    """Every piece that has a character of a drawn word is masked."""
    mask = tokenizer.special.mask
    if mask is None:
        raise TokenizerError("the tokenizer has no mask token, so there is nothing to measure")
    tokens = tokenizer.encode(text.text)
    drawn = np.zeros(len(text.text) + 1, np.int64)
    for start, end in text.masked:
        drawn[start:end] = 1
    before = np.concatenate([[0], np.cumsum(drawn)])
    starts, ends = tokens.offsets.T
    chosen = np.flatnonzero(~tokens.special & (before[ends] > before[starts]))
    ids = tokens.ids.copy()
    ids[chosen] = mask
    return {"tokens": ids, "masked": Places("tokens", chosen), "masked_targets": tokens.ids[chosen]}


def masked_texts(file: Path, num_rows: int) -> list[MaskedText]:
    """Rows spread evenly over a file of documents, with the same words drawn every time."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [row for line in lines for paragraph in json.loads(line)["text"].split("\n") for row in cut(paragraph)]
    numbers = np.unique(np.linspace(0, len(rows) - 1, num_rows).astype(np.int64)).tolist()
    return [draw_words(rows[number], number) for number in numbers]


def cut(paragraph: str) -> list[str]:
    """Rows of about equal length, between words; single characters with nothing around them are left out."""
    words = [found.span() for found in WORD.finditer(paragraph)]
    if len(words) < 2:
        return []
    widths = np.array([WIDTH if IDEOGRAPH.match(paragraph, start) else end - start + 1 for start, end in words])
    ends = np.cumsum(widths)
    count = -(-int(ends[-1]) // LONGEST)
    parts = np.minimum(ends * count // (ends[-1] + 1), count - 1)
    bounds = [(int(own[0]), int(own[-1])) for part in range(count) if len(own := np.flatnonzero(parts == part)) > 1]
    return [paragraph[words[first][0] : words[last][1]] for first, last in bounds]


def draw_words(text: str, number: int) -> MaskedText:
    """At least one word."""
    words = [found.span() for found in WORD.finditer(text)]
    count = max(1, round(RATE * len(words)))
    drawn = generator(0, 0, number, "corrupt").choice(len(words), size=count, replace=False)
    return MaskedText(text, tuple(words[word] for word in sorted(drawn.tolist())))


if __name__ == "__main__":
    main()
