"""Runs that meet what is wrong: weights that no step can be taken from, and the state of another run."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertie.data.corpus import Corpus, write_shards
from bertie.data.shards import CorpusDocument
from bertie.errors import FolderError
from bertie.models.model import Model
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.reporting.events import Event, OnEvent, ignore
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer
from bertie.train.budget import Steps
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.loop import NotFiniteError
from bertie.train.pretraining.options import PretrainOptions
from bertie.train.run import pretrain
from bertie.train.stopping import Stopped

TOKENIZER = wordpiece_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(40))])
SMALL = PretrainOptions(budget=Steps(steps=12), length=32, batch_tokens=256, save_every=2, held_out=0)


@pytest.fixture
def go(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """`go(folder, seed=3)`: a tiny run with some options replaced."""
    rng, documents = np.random.default_rng(0), []
    for number in range(40):
        ids = rng.integers(5, 45, 20).astype(np.uint16)
        sentences = np.arange(0, 20, 4, dtype=np.uint32)
        documents.append(CorpusDocument(ids, sentences, np.ones(20, bool), str(number)))
    corpus: Corpus = write_shards(tmp_path / "corpus", documents, TOKENIZER)

    def run(folder: Path, on_event: OnEvent = ignore, **changes: Any) -> dict[str, Any]:
        model = Model.new(bert(Size(depth=1, width=16, num_heads=2), TOKENIZER.size), seed=1)
        return pretrain(folder, model, corpus, TOKENIZER, SMALL.replace(**changes), on_event=on_event)

    return run


def test_a_state_that_no_step_could_be_taken_from_is_not_good(go: Callable[..., Any], tmp_path: Path) -> None:
    """Weights that one step threw far off are finite, and still all that follows is not."""
    far = AdamWSpec(rate=1e30)
    with pytest.raises(NotFiniteError) as caught:
        go(tmp_path / "run", optimizer=far, clip=1e30, save_every=1)
    kept = caught.value.step > 1
    assert ("start over" in str(caught.value)) != kept
    assert (tmp_path / "run" / "last-good").exists() == kept


def test_a_checkpoint_of_another_run_is_refused(go: Callable[..., Any], tmp_path: Path) -> None:
    def stop(event: Event) -> None:
        if event.kind == "step" and event.data["step"] == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    for seed in (1, 2):
        with pytest.raises(Stopped):
            go(tmp_path / str(seed), stop, seed=seed)
    shutil.rmtree(tmp_path / "2" / "checkpoints")
    shutil.copytree(tmp_path / "1" / "checkpoints", tmp_path / "2" / "checkpoints")
    with pytest.raises(FolderError, match="the checkpoint belongs to another run"):
        go(tmp_path / "2", seed=2)
