"""A stack that remembers earlier segments, trained by the ordinary run over streams: row b continues row b, the memory
travels through steps and checkpoints, and a run that is killed ends in the same bits.

Transformer-XL, section 3.2, with the shared attention and the shared masked language model.
"""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bertie.batch import Ragged
from bertie.data.batching import TokenBudget
from bertie.data.corpus import Corpus, write_shards
from bertie.data.data_schedule import Curriculum, DataSchedule, Phase, stages_of
from bertie.data.epoch_plan import EpochPlan
from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.shapes import Streams
from bertie.data.shards import CorpusDocument
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.attention.rotary import RotarySpec
from bertie.nn.memory import Memory
from bertie.objectives.masked_lm import MaskedLM
from bertie.reporting.events import Event, OnEvent, ignore
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.train import run
from bertie.train.budget import Steps
from bertie.train.folder.checkpoint import MEMORY
from bertie.train.folder.log import read_log
from bertie.train.instances import Instances
from bertie.train.loop import take_step
from bertie.train.pretraining.options import PretrainOptions

LENGTH, STREAMS, WORDS = 8, 4, 40
OPTIONS = PretrainOptions(
    budget=Steps(steps=12),
    length=LENGTH,
    batch_tokens=LENGTH * STREAMS,
    micro_tokens=LENGTH * 3,
    held_out=0,
    save_every=3,
    keep=9,
)


def remembering(memory_length: int = 12) -> Recipe:
    changes = {
        "encoder.stack.block.mixer.memory_length": memory_length,
        "encoder.stack.block.mixer.scorer": RotarySpec(dropout=0.1),
        "objectives": (MaskedLM(samples=Streams(num_streams=STREAMS)),),
    }
    return bert(Size(depth=2, width=32, num_heads=2), WORDS + 5).changed(changes)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As a forked process must have: the threads of its parent are not there."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    (folder / "tokenizer").mkdir(parents=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(WORDS))]
    (folder / "tokenizer" / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder / "tokenizer")
    assert tokenizer is not None
    rng = np.random.default_rng(0)
    lengths = rng.integers(10, 60, 12).tolist()
    documents = [
        CorpusDocument(
            rng.integers(5, WORDS + 5, length).astype(np.uint16),
            np.arange(0, length, 5, dtype=np.uint32),
            np.ones(length, bool),
            str(number),
        )
        for number, length in enumerate(lengths)
    ]
    write_shards(folder, documents, tokenizer)
    return Corpus.open(folder, tokenizer)


@pytest.fixture
def tokenizer(corpus: Corpus) -> Tokenizer:
    loaded = load_tokenizer(corpus.folder / "tokenizer")
    assert loaded is not None
    return loaded


def train(folder: Path, corpus: Corpus, tokenizer: Tokenizer, on_event: OnEvent = ignore, **changes: Any) -> bytes:
    run.pretrain(folder, Model.new(remembering(), 1), corpus, tokenizer, OPTIONS.replace(**changes), on_event=on_event)
    return (folder / "model" / "model.safetensors").read_bytes()


def kill_at(step: int) -> OnEvent:
    def on_event(event: Event) -> None:
        if event.kind == "step" and event.data["step"] == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return on_event


def test_killed_and_resumed_it_ends_in_the_same_bits(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", corpus, tokenizer)
    process = os.fork()
    if not process:
        train(tmp_path / "killed", corpus, tokenizer, kill_at(8))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    kept = Memory.restored(load_file(tmp_path / "killed" / "checkpoints" / "step-00000006" / MEMORY))
    assert kept.num_rows == STREAMS and len(kept.layers) == 2
    assert train(tmp_path / "killed", corpus, tokenizer) == whole
    (resumed,) = [record for record in read_log(tmp_path / "killed") if record["event"] == "resume"]
    assert (resumed["step"], resumed["exact"]) == (6, True)


def test_what_is_remembered_matters(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(tmp_path / "whole", corpus, tokenizer)
    monkeypatch.setattr(run, "take_step", lambda *given, **named: replace(take_step(*given, **named), memory=None))
    assert train(tmp_path / "forgetting", corpus, tokenizer) != whole


def test_micro_batches_remember_as_one_batch(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    def losses(folder: Path, micro_tokens: int) -> list[float]:
        calm = remembering().changed(
            {
                "encoder.stack.block.mixer.scorer.dropout": 0.0,
                "encoder.stack.block.residual.dropout": 0.0,
                "encoder.embeddings.dropout": 0.0,
            }
        )
        run.pretrain(folder, Model.new(calm, 1), corpus, tokenizer, OPTIONS.replace(micro_tokens=micro_tokens))
        return [record["loss"] for record in read_log(folder) if record["event"] == "step"]

    assert losses(tmp_path / "one", 1000) == pytest.approx(losses(tmp_path / "four", LENGTH), abs=1e-4)


@pytest.mark.parametrize(("rank", "num_ranks"), [(0, 1), (0, 2), (1, 2)])
def test_row_b_continues_row_b_over_epochs_and_ranks(
    corpus: Corpus, tokenizer: Tokenizer, rank: int, num_ranks: int
) -> None:
    samples = build_samples(Streams(length=LENGTH, num_streams=STREAMS), corpus, Frame.of(tokenizer))
    stages = stages_of(Curriculum(phases=(Phase(share=1, length=LENGTH),)), OPTIONS.batch_tokens)
    schedule = DataSchedule(stages, [samples], seed=3)
    instances = Instances(schedule, None, LENGTH, 3, rank=rank, num_ranks=num_ranks)
    assert instances.rows_continue
    place, expected = schedule.enter(None, 0.0), None
    for _ in range(3 * samples.num_samples // STREAMS):
        micros = instances(place)
        rows = [row for micro in micros for row in micro.ragged("tokens").rows()]
        assert len(rows) == STREAMS // num_ranks
        if expected is not None:
            assert [int(row[0]) for row in rows] == expected
        expected = [int(number) for micro in micros for number in micro.tensor("following")]
        place = schedule.after(place)


def test_a_step_too_small_for_the_streams_is_refused(corpus: Corpus, tokenizer: Tokenizer) -> None:
    samples = build_samples(Streams(length=LENGTH, num_streams=STREAMS), corpus, Frame.of(tokenizer))
    with pytest.raises(SpecError, match="a row of each of 4 streams; give at least `batch_tokens=32`"):
        EpochPlan(samples, TokenBudget(tokens=31), seed=0)


def test_a_memory_can_be_cut_joined_and_saved() -> None:
    states = Ragged(torch.randn(6, 3, requires_grad=True), torch.tensor([3, 1, 2]))
    memory = Memory(({"states": states}, None, {"hidden": torch.randn(3, 5), "cell": torch.randn(3, 5)}))
    again = Memory.restored(memory.tensors())
    assert len(again.layers) == 3 and again.layers[1] is None and again.num_rows == 3
    parts = [memory.detach().rows([0, 1]), memory.detach().rows([2])]
    assert parts[0].num_rows == 2
    joined = Memory.join(parts).tensors()
    for name, tensor in memory.tensors().items():
        assert torch.equal(joined[name], tensor) and torch.equal(again.tensors()[name], tensor)
        assert not joined[name].requires_grad
    turned = memory.rows([2, 0]).layers[0]
    assert turned is not None
    rows = turned["states"]
    assert isinstance(rows, Ragged) and rows.sizes == [2, 3]
