"""Learning is real: every objective finds the structure that was planted for it, on documents held out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.corpus import Corpus
from bertie.data.masking import Chooser, EachToken, NGrams, Spans, WholeWords
from bertie.data.shapes import Pairs, Segments
from bertie.models.model import Model
from bertie.models.recipe import AnyObjective, Recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.sentence_order import SentenceOrder
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import Steps
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.learning.schedule import Linear
from bertie.train.pretraining.options import PretrainOptions
from bertie.train.run import pretrain


def learn(
    folder: Path,
    objectives: tuple[AnyObjective, ...],
    corpus: Corpus,
    tokenizer: Tokenizer,
    make: Callable[..., Recipe],
    steps: int,
) -> dict[str, float]:
    options = PretrainOptions(
        budget=Steps(steps=steps),
        length=32,
        batch_tokens=768,
        optimizer=AdamWSpec(rate=4e-3),
        schedule=Linear(warmup=0.1),
        save_every=steps,
        held_out=10,
        eval_every=steps,
        eval_rows=200,
        log_every=50,
    )
    model = Model.new(make(objectives, width=64), seed=0)
    return pretrain(folder, model, corpus, tokenizer, options)["evaluation"]


@pytest.mark.parametrize(
    ("choose", "plan"),
    [(EachToken(), "ring"), (WholeWords(), "pieces"), (Spans(), "pieces"), (NGrams(), "pieces")],
    ids=["tokens", "whole words", "spans", "n-grams"],
)
def test_masked_tokens(
    make_corpus: Callable[..., Corpus],
    tokenizer: Tokenizer,
    recipe: Callable[..., Recipe],
    tmp_path: Path,
    choose: Chooser,
    plan: str,
) -> None:
    """Where words have two pieces, neither helps to guess the other: both are hidden together."""
    corpus = make_corpus(tmp_path / "c", 1000, plan)
    found = learn(tmp_path / "run", (MaskedLM(samples=Segments(), choose=choose),), corpus, tokenizer, recipe, 200)
    assert found["masked_lm_accuracy"] > 0.9
    assert found["masked_lm"] < 0.3 * found["unigram_loss"]
    assert found["unigram_accuracy"] < 0.2, "frequency alone must not find it"


def test_next_sentence(
    make_corpus: Callable[..., Corpus], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    corpus = make_corpus(tmp_path / "c", 1000, "topics")
    objectives = (MaskedLM(samples=Pairs()), NextSentence())
    # One false partner in ten has the same topic by chance, and cannot be told.
    assert learn(tmp_path / "run", objectives, corpus, tokenizer, recipe, 300)["next_sentence_accuracy"] > 0.9


def test_sentence_order(
    make_corpus: Callable[..., Corpus], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    corpus = make_corpus(tmp_path / "c", 1000, "rising")
    objectives = (MaskedLM(samples=Pairs(order=True)), SentenceOrder())
    assert learn(tmp_path / "run", objectives, corpus, tokenizer, recipe, 200)["sentence_order_accuracy"] > 0.9
