"""Fine-tuning runs: what is learned, kept, refused and passed over, and how a run goes on."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import bertie
from bertie.data.rows import RowError, open_rows
from bertie.errors import InputError, SpecError, TokenizerError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import xlnet
from bertie.models.sentence import SentenceSettings
from bertie.nn.pooling import Pooling, Projection
from bertie.tasks import labelled
from bertie.tasks.aspects import Aspects
from bertie.tasks.classification import Classify
from bertie.tasks.examples import Examples
from bertie.tasks.labelled import Labelled
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.siamese.siamese import Siamese
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, check_options, finetune, fit, task_model
from bertie.train.finetuning.task_evaluation import TaskEvaluation
from bertie.train.folder.checkpoint import WEIGHTS

Record = dict[str, Any]
COLUMNS = {"text": "text", "label": "label"}


@pytest.fixture
def base(tokenizer: Tokenizer, recipe: Callable[..., Recipe]) -> Pretrained:
    return Pretrained(Model.new(recipe(dropout=0.1)), tokenizer)


def write(path: Path, rows: Sequence[Record]) -> Labelled:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Labelled(open_rows([path]), COLUMNS)


def planted(count: int, start: int = 0) -> list[Record]:
    """The label says whether the text holds w1 or w2."""
    return [
        {"text": f"w{5 + number % 7} w{1 + number % 2} w{12 + number % 5}", "label": "two" if number % 2 else "one"}
        for number in range(start, start + count)
    ]


def options(num_rows: int, epochs: float = 6, **fields: Any) -> FinetuneOptions:
    quick = {"optimizer": {"kind": "adamw", "rate": 3e-3}, "length": 16, **fields}
    return FinetuneOptions.of_epochs([num_rows], epochs, 8, quick)


def tokenizer_of(base: Pretrained) -> Tokenizer:
    assert base.tokenizer is not None
    return base.tokenizer


def go(folder: Path, base: Pretrained, train: Labelled, dev: Labelled | None, **fields: Any) -> Record:
    copy = Pretrained(Model.new(base.recipe), base.tokenizer)  # training changes the model that it is given
    task = fit(Classify(), train, "refuse")
    job = PreparedTask.of(task, train, dev, tokenizer_of(base), fields.get("length", 16), "refuse")
    return finetune(folder, copy, [job], options(train.rows.num_rows, **fields)).summary


def test_a_planted_rule_is_learned_and_the_folder_answers_in_words(base: Pretrained, tmp_path: Path) -> None:
    train, dev = write(tmp_path / "train.jsonl", planted(48)), write(tmp_path / "dev.jsonl", planted(10, 100))
    summary = go(tmp_path / "run", base, train, dev, epochs=12)
    assert summary["evaluation"]["accuracy"] == 1.0
    assert summary["steps"] == 12 * 6
    opened = bertie.load(tmp_path / "run")
    assert opened.card["length"] == 16
    (task,) = opened.recipe.objectives
    assert isinstance(task, Classify) and task.labels == ("one", "two")


def test_the_best_model_is_kept_not_the_last(base: Pretrained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, dev = write(tmp_path / "train.jsonl", planted(16)), write(tmp_path / "dev.jsonl", planted(4))
    ranks = iter([-0.2, -0.9, -0.1])
    monkeypatch.setattr(TaskEvaluation, "rank", lambda self, figures: next(ranks))
    summary = go(tmp_path / "run", base, train, dev, epochs=3, keep=3)
    assert summary["best"] == {"step": 4, "loss": summary["best"]["loss"], "rank": -0.9}
    weights = dict(bertie.load(tmp_path / "run").model.named_parameters())
    best, last = (load_file(tmp_path / "run" / "checkpoints" / f"step-{step:08}" / WEIGHTS) for step in (4, 6))
    assert all(weights[name].equal(one) for name, one in best.items() if name in weights)
    name = "heads.classify.output.weight"
    assert weights[name].equal(best[name]) and not weights[name].equal(last[name])


def test_patience_ends_a_run(base: Pretrained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, dev = write(tmp_path / "train.jsonl", planted(16)), write(tmp_path / "dev.jsonl", planted(4))
    monkeypatch.setattr(Classify, "score", lambda self, answers, gold: {"accuracy": 0.5})
    summary = go(tmp_path / "run", base, train, dev, epochs=20, patience=2)
    assert summary["steps"] == 3 * 2, "the first is the best, two are no better"
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert any("no improvement in 2 evaluations" in record.get("what", "") for record in log)
    losses = [record["loss"] for record in log if record["event"] == "evaluation"]
    assert summary["best"]["loss"] == min(losses), "of equally good ones the one of the lowest loss"


def test_a_stopped_run_goes_on_to_the_same_bits(
    base: Pretrained, tmp_path: Path, stopped_after: Callable[[int], AbstractContextManager[None]]
) -> None:
    train, dev = write(tmp_path / "train.jsonl", planted(21)), write(tmp_path / "dev.jsonl", planted(6))
    go(tmp_path / "whole", base, train, dev)
    with stopped_after(7):
        go(tmp_path / "stopped", base, train, dev)
    go(tmp_path / "stopped", base, train, dev)
    ends = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert ends[0] == ends[1]


def test_a_bad_row_is_named_by_file_and_line_or_counted(base: Pretrained, tmp_path: Path) -> None:
    rows = planted(16)
    rows[5] = {"text": "  ", "label": "one"}
    train = write(tmp_path / "train.jsonl", rows)
    with pytest.raises(RowError, match="the text is empty") as caught:
        go(tmp_path / "run", base, train, None)
    assert caught.value.where == f"{tmp_path / 'train.jsonl'}:6" and "`skip_bad`" in str(caught.value)
    task = fit(Classify(), train, "skip")
    copy = Pretrained(Model.new(base.recipe), base.tokenizer)
    job = PreparedTask.of(task, train, None, tokenizer_of(base), 16, "skip")
    summary = finetune(tmp_path / "run", copy, [job], options(16)).summary
    assert summary["steps"] == 12, "the same folder goes on: how bad rows are met decides no bits before them"


def test_a_label_that_training_never_saw_is_an_error(base: Pretrained, tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", planted(16))
    dev = write(tmp_path / "dev.jsonl", [*planted(3), {"text": "w1", "label": "three"}])
    with pytest.raises(InputError, match="'three' is not in the training data") as caught:
        go(tmp_path / "run", base, train, dev)
    assert str(caught.value.where).endswith("dev.jsonl:4")
    assert not (tmp_path / "run").exists(), "refused before the folder is made"


def test_rows_without_a_label_are_refused_when_labels_are_gathered(tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", [*planted(3), {"text": "w1", "label": None}])
    with pytest.raises(RowError, match="the column 'label' is empty"):
        fit(Classify(), train, "refuse")
    task = fit(Classify(), train, "skip")
    assert isinstance(task, Classify) and task.labels == ("one", "two")


def test_labels_of_many_rows_come_from_some_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = write(tmp_path / "train.jsonl", planted(100))
    monkeypatch.setattr(labelled, "SAMPLE", 30)
    assert len(train.sample_numbers()) <= 34
    assert isinstance(task := fit(Classify(), train, "refuse"), Classify) and len(task.labels) == 2


def test_thresholds_are_tuned_on_dev_and_saved(base: Pretrained, tmp_path: Path) -> None:
    rows = [{**row, "label": "odd, all" if number % 2 else "all"} for number, row in enumerate(planted(24))]
    train = write(tmp_path / "train.jsonl", rows)
    task = fit(MultiLabel(), train, "refuse")
    assert isinstance(task, MultiLabel) and task.labels == ("all", "odd")
    job = PreparedTask.of(task, train, train, tokenizer_of(base), 16, "refuse")
    finetune(tmp_path / "run", base, [job], options(24, epochs=10))
    (kept,) = bertie.load(tmp_path / "run").recipe.objectives
    assert isinstance(kept, MultiLabel) and kept.thresholds != task.thresholds


def test_aspects_need_all_their_columns(tmp_path: Path) -> None:
    rows = [{"text": "w1 w2", "taste": "good", "price": "high"}, {"text": "w3", "taste": "bad", "price": "low"}]
    train = replace(write(tmp_path / "t.jsonl", rows), columns={"text": "text", "taste": "taste", "price": "price"})
    task = fit(Aspects(aspects={"taste": (), "price": ()}), train, "refuse")
    assert isinstance(task, Aspects) and task.aspects == {"taste": ("bad", "good"), "price": ("high", "low")}


def test_what_cannot_work_is_refused_before_anything_is_written(base: Pretrained, tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", planted(8))
    with pytest.raises(SpecError, match="longer than the model takes"):
        go(tmp_path / "run", base, train, None, length=1000)
    with pytest.raises(TokenizerError):
        Pretrained(Model.new(base.recipe)).tokenizer_for(16)
    assert not (tmp_path / "run").exists()


def test_a_folder_of_another_run_is_refused(base: Pretrained, tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", planted(8))
    go(tmp_path / "run", base, train, None, epochs=1)
    with pytest.raises(SpecError, match="options: `seed` was 0, now 1;"):
        go(tmp_path / "run", base, train, None, epochs=1, seed=1)


def test_the_encoder_is_as_it_was_and_the_head_is_new(base: Pretrained) -> None:
    task = Classify(labels=("a", "b"))
    model = task_model(base, [task], seed=0)
    assert list(model.heads) == ["classify"]
    before = dict(base.model.encoder.named_parameters())
    assert all(one.equal(before[name]) for name, one in model.encoder.named_parameters())
    head, other = (task_model(base, [task], seed).heads["classify"].state_dict() for seed in (0, 1))
    assert not head["output.weight"].equal(other["output.weight"])


def test_what_is_measured_and_saved_has_the_head_of_the_model(tokenizer: Tokenizer, tmp_path: Path) -> None:
    base = Pretrained(Model.new(xlnet(Size(depth=1, width=16, num_heads=2), tokenizer.size)), tokenizer)
    train, dev = write(tmp_path / "train.jsonl", planted(16)), write(tmp_path / "dev.jsonl", planted(6))
    summary = go(tmp_path / "run", base, train, dev, epochs=2)
    opened = bertie.load(tmp_path / "run")
    (task,) = opened.recipe.objectives
    assert isinstance(task, Classify) and task.head.tokens == "last"
    examples = Examples(task, dev, tokenizer, 16, "refuse").all()
    figures = TaskEvaluation(task, examples)(opened.model)
    assert figures["loss"] == pytest.approx(summary["evaluation"]["loss"], rel=1e-4)


def learn_vectors(folder: Path, base: Pretrained, tmp_path: Path, name: str | None = None, **fields: Any) -> Record:
    rows = [{"text": f"w{number} w{number + 1}", "other": f"w{number + 2} w{number}"} for number in range(8)]
    train = Labelled(write(tmp_path / "pairs.jsonl", rows).rows, {"text": "text", "other": "other"})
    job = PreparedTask.of(fit(Siamese(), train, "refuse"), train, None, tokenizer_of(base), 16, "refuse")
    return finetune(folder, base, [job], options(8, epochs=1, **fields), base=name).summary


def dense_base(base: Pretrained) -> Pretrained:
    torch.manual_seed(0)
    layer = Projection(torch.randn(4, base.recipe.encoder.width), torch.randn(4))
    return Pretrained(base.model, base.tokenizer, SentenceSettings(Pooling(), projection=layer))


@pytest.mark.parametrize("micro_tokens", [8, 4096])
def test_a_dense_layer_behind_the_pooling_learns_with_the_encoder(
    base: Pretrained, tmp_path: Path, micro_tokens: int
) -> None:
    """Over one pass or many."""
    begun = dense_base(base)
    summary = learn_vectors(tmp_path / "run", begun, tmp_path, micro_tokens=micro_tokens)
    assert not any("dense layer" in note for note in summary["notes"])
    learned = bertie.load(tmp_path / "run" / "model")
    assert learned.settings is not None and begun.settings is not None
    layer, before = learned.settings.projection, begun.settings.projection
    assert layer is not None and before is not None and layer.bias is not None and before.bias is not None
    assert not torch.equal(layer.weight, before.weight) and not torch.equal(layer.bias, before.bias)
    vectors = learned.encode(["w1 w2", "w3"])
    assert vectors.shape == (2, 4)
    (task,) = [one for one in learned.recipe.objectives if isinstance(one, Siamese)]
    pair = Labelled(
        write(tmp_path / "p.jsonl", [{"text": "w1 w2", "other": "w3"}]).rows, {"text": "text", "other": "other"}
    )
    measured = Examples(task, pair, tokenizer_of(learned), 16, "refuse").all()
    (answer,) = TaskEvaluation(task, measured, None).answers(learned.model)
    assert answer["cosine"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-6)


def test_adapters_and_what_they_are_merged_into_make_the_same_vectors(base: Pretrained, tmp_path: Path) -> None:
    dense_base(base).save(tmp_path / "base")
    begun = bertie.load(tmp_path / "base")
    learn_vectors(tmp_path / "run", begun, tmp_path, str(tmp_path / "base"), low_rank={"rank": 2})
    merged, adapter = (bertie.load(tmp_path / "run" / "model" / inside) for inside in ("", "adapter"))
    texts = ["w1 w2", "w3"]
    torch.testing.assert_close(adapter.encode(texts), merged.encode(texts), rtol=0, atol=1e-6)
    assert adapter.stated_limit == merged.stated_limit
    assert not torch.allclose(torch.tensor(begun.encode(texts)), torch.tensor(merged.encode(texts)), atol=1e-3)


@pytest.mark.parametrize(
    ("learning", "told"),
    [
        ({"freeze": "all"}, "all layers are frozen, and nothing above them can learn; freeze fewer"),
        ({"unfreeze_every": 1}, "at first all layers are frozen, .* can learn; leave out `unfreeze_every`"),
    ],
)
def test_frozen_layers_under_nothing_that_learns_are_refused(
    base: Pretrained, tmp_path: Path, learning: dict[str, Any], told: str
) -> None:
    with pytest.raises(SpecError, match=told):
        learn_vectors(tmp_path / "run", base, tmp_path, learning=learning)
    assert learn_vectors(tmp_path / "dense", dense_base(base), tmp_path, learning={"freeze": "all"})["steps"] == 1


def test_without_rows_nothing_is_begun(base: Pretrained, tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    with pytest.raises(InputError, match=r"empty\.jsonl: there are no training rows"):
        PreparedTask.of(Siamese(), empty, None, tokenizer_of(base), 16, "refuse")


def test_rows_that_are_compared_are_not_alone(base: Pretrained, tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", [{"text": "w1 w2"}])
    task = Siamese(criterion="simcse")
    one = PreparedTask.of(task, Labelled(train.rows, {"text": "text"}), None, tokenizer_of(base), 16, "refuse")
    for criterion, ok in (("simcse", False), ("cosine", True)):
        prepared = replace(one, task=task.replace(criterion=criterion))
        with nullcontext() if ok else pytest.raises(SpecError, match="there are none; give at least two rows"):
            check_options(options(1), base.model, [prepared])


def test_a_dense_layer_that_is_left_behind_is_told(base: Pretrained, tmp_path: Path) -> None:
    """Behind a top of another width it does not fit."""
    top = {"lstm": {"width": 8}}
    notes = learn_vectors(tmp_path / "run", dense_base(base), tmp_path, top=top)["notes"]
    assert "vectors are learned without the dense layer of the folder" in notes


def test_an_adversary_has_all_rows_that_are_compared_in_one_pass(base: Pretrained, tmp_path: Path) -> None:
    summary = learn_vectors(tmp_path / "run", base, tmp_path, micro_tokens=8, adversary={"kind": "fgm"})
    assert summary["steps"] == 1
