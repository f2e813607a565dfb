"""The options of fine-tuning: what they stand for, their defaults, and combinations that cannot work."""

from pathlib import Path
from typing import Any

import pytest

from bertie.errors import SpecError
from bertie.jobs.finetuning.finetune import FinetuneJob
from bertie.jobs.finetuning.finetune_options import AdaptationOptions, DataOptions
from bertie.nn.low_rank import LowRankSpec
from bertie.reporting.events import ignore
from bertie.train.learning.learning_rates import LearningSpec


def job(**options: Any) -> FinetuneJob:
    return FinetuneJob.of(**{"task": "classify", "train": [{"text": "a", "label": "b"}], "base": "model", **options})


def refuse_together(**options: Any) -> None:
    made = job(**options)
    made._refuse_together(made.adaptation.learning(10))


def test_what_is_not_given_is_none() -> None:
    assert AdaptationOptions().low_rank() is None
    assert AdaptationOptions().learning(10) is None
    assert AdaptationOptions().feature_top() is None


def test_adapters_are_in_all_matrices_with_twice_the_rank_for_alpha() -> None:
    spec = AdaptationOptions(lora=8).low_rank()
    assert spec == LowRankSpec(rank=8, on=("query", "key", "value", "output", "up", "down"))
    assert spec is not None and spec.scale == 2
    chosen = AdaptationOptions(lora=4, lora_alpha=4, lora_dropout=0.1, lora_on="query, key,up").low_rank()
    assert chosen == LowRankSpec(rank=4, alpha=4, dropout=0.1, on=("query", "key", "up"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"freeze": "embeddings"}, {"freeze": "embeddings"}),
        ({"freeze": "3", "layer_decay": 0.9}, {"freeze": 3, "layer_decay": 0.9}),
        ({"unfreeze_every": "epoch"}, {"unfreeze_every": 157}),
        ({"unfreeze_every": "20"}, {"unfreeze_every": 20}),
    ],
)
def test_options_become_a_learning_spec(options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert AdaptationOptions(**options).learning(157) == LearningSpec(**expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lora_alpha": 16}, "`lora_alpha` needs `lora`"),
        ({"lora_on": "query"}, "`lora_on` needs `lora`"),
        ({"lora": 8, "lora_on": "querry"}, "`lora_on`: 'querry' is not one of query"),
        ({"lora": 8, "lora_dropout": 1.0}, "`lora_dropout`: input should be less than 1"),
        ({"lora": 8, "lora_alpha": -1.0}, "`lora_alpha`: input should be greater than 0"),
        ({"freeze": "embedding"}, "`freeze`: 'embedding' is not embeddings, all or a number of layers"),
        ({"unfreeze_every": "often"}, "'often' is not a number of steps; or epoch"),
        ({"freeze": "all", "unfreeze_every": "epoch"}, "none can be unfrozen"),
        ({"layer_decay": 1.5}, "`layer_decay`: input should be less than or equal to 1"),
        ({"unfreeze_every": "0"}, "`unfreeze_every`: input should be greater than or equal to 1"),
        ({"features": "lasst"}, "`features`: 'lasst' is not one of last"),
        ({"top": "lstm"}, "`top` needs `features`"),
        ({"epsilon": 1}, "`epsilon` needs `adversarial`"),
        ({"column": ["review"]}, "'review' is not of the form ROLE=NAME"),
        ({"also": ["tag"]}, "'tag' is not of the form TASK:TRAIN[:DEV]"),
        ({"recipe": "bert"}, "`base` and `recipe` cannot both be given"),
    ],
)
def test_wrong_values_are_refused_under_the_name_of_their_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as refused:
        made = job(**options)
        made.adaptation.low_rank(), made.adaptation.learning(10), made.adaptation.feature_top()
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "last", "lora": 4}, "`features` freezes the whole encoder, so `lora` has no effect"),
        ({"features": "last", "freeze": "all"}, "`features` freezes the whole encoder, so `freeze`"),
        ({"features": "last", "noise": 0.1}, "`noise` changes rows"),
        ({"features": "last", "adversarial": "fgm"}, "`adversarial` changes rows"),
        ({"freeze": "all", "lora": 4}, "leaves nothing for `lora` to train"),
        ({"base": None, "recipe": "bert", "lora": 4}, "`lora` would keep random weights"),
        ({"base": None, "recipe": "bert", "freeze": "all"}, "`freeze` would keep random weights"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as refused:
        refuse_together(**options)
    assert message in str(refused.value)


def test_options_that_go_together_are_accepted() -> None:
    refuse_together(freeze="2", lora=4)
    refuse_together(base=None, recipe="bert", layer_decay=0.9)
    refuse_together(features="last")


@pytest.mark.parametrize(
    ("options", "rate"),
    [
        ({}, 5e-5),
        ({"lr": 3e-4, "lora": 4}, 3e-4),
        ({"lora": 4}, 1e-3),
        ({"freeze": "all"}, 1e-3),
        ({"freeze": "2"}, 5e-5),
        ({"features": "last"}, 1e-3),
        ({"base": None, "recipe": "bert"}, 1e-3),
    ],
)
def test_new_weights_learn_faster(options: dict[str, Any], rate: float) -> None:
    made = job(**options)
    assert made._rate(made.adaptation.learning(10), ignore) == rate


def test_features_are_kept_beside_the_run_and_never_in_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert job()._feature_store(run) == tmp_path / "features"
    assert job(features="last", feature_store=tmp_path / "runs")._feature_store(run) == tmp_path / "runs"
    for given, out in ((None, tmp_path / "features"), (run, run), (run / "store", run)):
        with pytest.raises(SpecError, match="cannot be stored in the run's own folder"):
            job(features="last", feature_store=given)._feature_store(out)


def test_columns_and_other_tasks_are_given_as_words_or_values() -> None:
    also = {"task": "tag", "train": "a.conll", "dev": "b.conll"}
    words = DataOptions.parse({"train": "a.tsv", "column": ["text=review"], "also": ["tag:a.conll:b.conll"]})
    values = DataOptions.parse({"train": "a.tsv", "column": {"text": "review"}, "also": [also]})
    assert words == values
