"""The peer is given what a run of bertie has: the same weights, rows and masks, and is measured by the same figure."""

from pathlib import Path

import numpy as np
import pytest
import torch

from bertie.data.corpus import write_shards
from bertie.data.shards import CorpusDocument
from bertie.jobs.text.corpus_jobs import open_corpus
from bertie.models.model import Model
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer
from bertie.train.budget import Steps
from bertie.train.pretraining.corpus_data import prepare
from bertie.train.pretraining.options import PretrainOptions
from experiments import trainer_data

VOCAB_SIZE, SEED = 100, 3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    (folder / "tokenizer").mkdir(parents=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(VOCAB_SIZE - 5))]
    (folder / "tokenizer" / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder / "tokenizer")
    assert tokenizer is not None
    rng = np.random.default_rng(0)
    documents = []
    for number in range(40):
        length = int(rng.integers(100, 400))
        ids = rng.integers(5, VOCAB_SIZE, length).astype(np.uint16)
        documents.append(
            CorpusDocument(ids, np.arange(0, length, 10, dtype=np.uint32), np.ones(length, bool), str(number))
        )
    write_shards(folder, documents, tokenizer)
    return folder


def test_the_peer_begins_where_bertie_begins(corpus: Path, tmp_path: Path) -> None:
    from benchmarks.contenders.pretrain_trainer import rows_of
    from experiments.peers.trainer import measure
    from transformers import BertForPreTraining

    trainer_data.write(corpus, tmp_path, "tiny", SEED, num_tokens=6000)
    opened, tokenizer = open_corpus(corpus, None)
    model = Model.new(bert(SIZES["tiny"], VOCAB_SIZE), SEED)
    data = prepare(opened, model.recipe, tokenizer, PretrainOptions(budget=Steps(steps=1), seed=SEED))
    assert data.evaluation is not None
    ours = data.evaluation(model)
    theirs = BertForPreTraining.from_pretrained(tmp_path / "model")
    found = measure(theirs, rows_of(str(tmp_path / "held-out.npz"), "next_sentence_label"))
    assert found["masked_lm"] == pytest.approx(ours["masked_lm"], abs=1e-5)
    assert found["masked_lm_accuracy"] == pytest.approx(ours["masked_lm_accuracy"], abs=1e-6)

    rows = rows_of(str(tmp_path / "train.npz"), "next_sentence_label")
    assert 6000 <= sum(len(row["input_ids"]) for row in rows) < 6000 + 2 * 4096
    batch = data.instances(data.start)[0]
    assert torch.equal(rows[0]["input_ids"], batch.ragged("tokens").rows()[0])
    masked = rows[0]["labels"] != -100
    assert torch.equal(rows[0]["labels"][masked], batch.tensor("masked_targets")[: int(masked.sum())])
    assert torch.equal(masked.nonzero()[:, 0], batch.tensor("masked")[: int(masked.sum())])
