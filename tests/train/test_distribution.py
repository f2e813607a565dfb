"""Several processes that train one model take the steps that one process would take."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bertie.batch import Ragged
from bertie.data.corpus import Corpus
from bertie.errors import SpecError
from bertie.models.recipe import Recipe
from bertie.nn.memory import Memory
from bertie.objectives.loss_report import Figure, LossReport
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import Steps
from bertie.train.distribution import ALONE, Ranks, gather_memory, joined
from bertie.train.folder.log import read_log
from bertie.train.pretraining.corpus_data import prepare
from bertie.train.pretraining.options import PretrainOptions

NUM_STEPS = 50
CHILD = """
import sys
from pathlib import Path
import torch
from bertie.data.corpus import Corpus
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.text.tokenizers.tokenizer import load_tokenizer
from bertie.train.distribution import joined
from bertie.train.pretraining.options import PretrainOptions
from bertie.train.run import pretrain
torch.set_num_threads(1)
folder = Path(sys.argv[1])
tokenizer = load_tokenizer(folder / "tokenizer")
recipe = Recipe.model_validate_json((folder / "recipe.json").read_text())
options = PretrainOptions.model_validate_json((folder / "options.json").read_text())
with joined() as ranks:
    corpus = Corpus.open(folder / "corpus", tokenizer)
    pretrain(folder / sys.argv[2], Model.new(recipe, 3), corpus, tokenizer, options, ranks=ranks)
"""


def test_alone_nothing_is_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as ranks:
        assert ranks is ALONE
        assert [ranks.combine(3, "sum"), ranks.combine(2, "max"), ranks.combine(0.5, "first")] == [
            3,
            2,
            0.5,
        ] and ranks.leads
        assert ranks.sum_counts({"a": torch.tensor(4)}) == {"a": torch.tensor(4)}
    assert not torch.distributed.is_initialized()


def test_figures_of_all_ranks_keep_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertie.train.distribution.dist.all_reduce", lambda total: total.mul_(2))  # two alike
    report = LossReport({"a": Figure.over(torch.tensor([1.0, 5.0]), 4.0)}, {"b": Figure.over(torch.tensor([2.0]))})
    summed = Ranks(0, 2).sum_report(report)
    assert (int(summed.losses["a"].count), int(summed.metrics["b"].count)) == (4, 2)
    assert float(summed.loss()) == float(report.loss()) == 12


def test_memories_of_ranks_come_together_in_the_order_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five rows the first of two ranks has rows 0, 2 and 4."""
    lengths = torch.tensor([2, 0, 3, 1, 2])
    rows = Ragged(torch.arange(8.0)[:, None], lengths)
    whole = Memory(({"states": rows, "cell": torch.arange(5)}, None))
    parts = [whole.rows(range(rank, 5, 2)) for rank in range(2)]
    waiting = iter(parts[0].tensors())

    def gather(ranks: Ranks, tensor: torch.Tensor) -> list[torch.Tensor]:
        name = next(waiting)
        return [part.tensors()[name].flatten(end_dim=0) for part in parts]

    monkeypatch.setattr(Ranks, "gather", gather)
    found = gather_memory(parts[0], Ranks(0, 2))
    assert found.tensors().keys() == whole.tensors().keys()
    assert all(torch.equal(tensor, found.tensors()[name]) for name, tensor in whole.tensors().items())


def test_two_processes_take_the_steps_of_one(
    tmp_path: Path, tokenizer: Tokenizer, make_corpus: Callable[..., Corpus], recipe: Callable[..., Recipe]
) -> None:
    """Equal global batches, no dropout: 50 losses within 1e-4, each token counted once, one log, one model."""
    tokenizer.save(tmp_path / "tokenizer")
    make_corpus(tmp_path / "corpus", 120, "topics")
    (tmp_path / "recipe.json").write_text(recipe().to_json())
    options = PretrainOptions(
        budget=Steps(steps=NUM_STEPS), length=32, batch_tokens=512, micro_tokens=200, save_every=20, eval_rows=20
    )
    (tmp_path / "options.json").write_text(options.to_json())
    (tmp_path / "child.py").write_text(CHILD)
    alone = [sys.executable, "child.py", str(tmp_path), "one"]
    together = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    for command in (alone, [*together, "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", *alone[1:3], "two"]):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    one, two = (steps(tmp_path / name) for name in ("one", "two"))
    assert len(one) == len(two) == NUM_STEPS
    for ours, other in zip(one, two, strict=True):
        assert ours["tokens"] == other["tokens"]
        assert ours["loss"] == pytest.approx(other["loss"], abs=1e-4)
        assert ours["norm"] == pytest.approx(other["norm"], rel=1e-3)
    summaries = [json.loads((tmp_path / name / "summary.json").read_text()) for name in ("one", "two")]
    assert summaries[0]["evaluation"]["loss"] == pytest.approx(summaries[1]["evaluation"]["loss"], abs=1e-4)


def steps(folder: Path) -> list[dict[str, float]]:
    return [record for record in read_log(folder) if record["event"] == "step"]


def test_more_processes_than_rows_are_refused_before_the_first_step(
    tmp_path: Path, tokenizer: Tokenizer, make_corpus: Callable[..., Corpus], recipe: Callable[..., Recipe]
) -> None:
    corpus = make_corpus(tmp_path / "corpus", 120, "topics")
    options = PretrainOptions(budget=Steps(steps=5), length=32, batch_tokens=160, held_out=0)
    prepare(corpus, recipe(), tokenizer, options, rank=3, num_ranks=4)
    with pytest.raises(SpecError, match="only 4 rows, fewer than there are processes"):
        prepare(corpus, recipe(), tokenizer, options, rank=3, num_ranks=5)
