"""A run on parallel text says what of it is never seen: before the first step, and in the end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.data.corpus import Corpus
from bertie.data.parallel_corpus import ParallelCorpus
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import xlm
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import Steps
from bertie.train.pretraining.options import PretrainOptions
from bertie.train.run import pretrain

OPTIONS = PretrainOptions(budget=Steps(steps=2), length=32, batch_tokens=128, micro_tokens=128, held_out=0)
ROOM = 32 - 3  # beside the special tokens


@pytest.fixture(scope="module")
def both(make_corpus: Callable[..., Corpus], tmp_path_factory: pytest.TempPathFactory) -> ParallelCorpus:
    """Documents of 12 to 24 tokens: most pairs are too long for a row."""
    folder = tmp_path_factory.mktemp("parallel")
    return ParallelCorpus(make_corpus(folder / "one", 40), make_corpus(folder / "two", 40, seed=1))


def run(folder: Path, both: ParallelCorpus, tokenizer: Tokenizer, **changes: Any) -> tuple[list[str], Any]:
    """What was told before the first step, and the summary."""
    model = Model.new(xlm(Size(depth=1, width=16, num_heads=2), tokenizer.size))
    told: list[Any] = []
    summary = pretrain(
        folder, model, both, tokenizer, OPTIONS.replace(**changes), on_event=lambda event: told.append(dict(event.data))
    )
    logged = [json.loads(line)["event"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert logged == [record["event"] for record in told]
    before = told[: next(number for number, record in enumerate(told) if record["event"] == "step")]
    return [record["what"] for record in before if record["event"] == "note"], summary


def test_what_is_cut_is_told_with_numbers(both: ParallelCorpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    notes, summary = run(tmp_path / "run", both, tokenizer)
    over = np.maximum(both.corpus.lengths + both.translations.lengths - ROOM, 0)
    assert 0 < np.count_nonzero(over) < 40
    rows, tokens = np.count_nonzero(over), over.sum()
    assert notes == [f"{rows} of 40 rows are cut to 32 tokens: {tokens:,} tokens are never seen"]
    assert summary["notes"][: len(notes)] == notes


def test_held_out_rows_are_told_apart(both: ParallelCorpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    notes, _ = run(tmp_path / "run", both, tokenizer, held_out=4)
    assert [note.startswith("held out: ") for note in notes] == [False, True]
    assert " of 30 rows" in notes[0] and " of 10 rows" in notes[1]


def test_nothing_is_said_where_nothing_is_lost(both: ParallelCorpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    notes, summary = run(tmp_path / "run", both, tokenizer, length=64)
    assert notes == []
    assert not any("cut" in note for note in summary["notes"])
