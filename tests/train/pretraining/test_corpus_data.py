"""The data of a run over parallel text: a text goes with its translation, and what does not fit is refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bertie.batch import Batch
from bertie.data.corpus import Corpus, write_shards
from bertie.data.parallel_corpus import ParallelCorpus
from bertie.data.shapes import Parallel, Segments
from bertie.data.shards import CorpusDocument
from bertie.errors import FolderError, InputError, SpecError
from bertie.models.recipe import Recipe
from bertie.objectives.masked_lm import MaskedLM
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer
from bertie.train.budget import Steps
from bertie.train.pretraining.corpus_data import prepare
from bertie.train.pretraining.evaluation import token_frequencies, unigram_figures
from bertie.train.pretraining.held_out import hold_out
from bertie.train.pretraining.options import PretrainOptions

OPTIONS = PretrainOptions(budget=Steps(steps=3), length=32, batch_tokens=256, held_out=5, eval_rows=20)
NUM_MEANINGS, APART = 20, 30  # words of a language; from a word to its translation


def write(folder: Path, tokenizer: Tokenizer, language: int, num_documents: int = 40) -> Corpus:
    """Document i is one word three times; which one is told by i and the language."""
    documents = [
        CorpusDocument(
            np.full(3, 5 + APART * language + number % NUM_MEANINGS), np.array([0]), np.ones(3, bool), str(number)
        )
        for number in range(num_documents)
    ]
    return write_shards(folder, documents, tokenizer)


@pytest.fixture
def corpus(tmp_path: Path, tokenizer: Tokenizer) -> ParallelCorpus:
    return ParallelCorpus(write(tmp_path / "one", tokenizer, 0), write(tmp_path / "two", tokenizer, 1))


@pytest.fixture
def translated(recipe: Callable[..., Recipe]) -> Recipe:
    return recipe(objectives=(MaskedLM(samples=Parallel()),))


def rows_of(batch: Batch) -> list[list[int]]:
    """As they were before tokens were masked."""
    tokens = batch.ragged("tokens")
    whole = tokens.values.index_put((batch.tensor("masked"),), batch.tensor("masked_targets"))
    return [row.tolist() for row in tokens.with_values(whole).rows()]


def test_a_text_goes_with_its_translation_also_where_it_is_held_out(
    corpus: ParallelCorpus, translated: Recipe, tokenizer: Tokenizer
) -> None:
    data = prepare(corpus, translated, tokenizer, OPTIONS)
    assert data.evaluation is not None
    for batches in (data.instances(data.start), data.evaluation.batches):
        rows = [row for batch in batches for row in rows_of(batch)]
        assert len(rows) > 5
        assert all(row[5:8] == [row[1] + APART] * 3 for row in rows)
        for batch in batches:
            assert batch.tensor("languages").tolist() == ([0] * 5 + [1] * 4) * batch.ragged("tokens").num_rows
            assert batch.tensor("positions").tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3] * batch.ragged("tokens").num_rows


def test_the_baseline_counts_the_words_of_both_languages(
    corpus: ParallelCorpus, translated: Recipe, tokenizer: Tokenizer
) -> None:
    evaluation = prepare(corpus, translated, tokenizer, OPTIONS).evaluation
    assert evaluation is not None
    learned = [hold_out(side, OPTIONS.held_out)[0] for side in (corpus.corpus, corpus.translations)]
    one, two = (token_frequencies(side, tokenizer.size) for side in learned)
    assert evaluation.baseline == unigram_figures(evaluation.batches, one + two, evaluation.prediction)
    assert evaluation.baseline != unigram_figures(evaluation.batches, one, evaluation.prediction)


def test_a_model_that_needs_two_texts_or_one_says_so(
    corpus: ParallelCorpus, translated: Recipe, recipe: Callable[..., Recipe], tokenizer: Tokenizer
) -> None:
    with pytest.raises(SpecError, match="learns from parallel text; give `translations`"):
        prepare(corpus.corpus, translated, tokenizer, OPTIONS)
    with pytest.raises(SpecError, match=r"learns from one text \(segments\); leave out `translations`"):
        prepare(corpus, recipe(objectives=(MaskedLM(samples=Segments()),)), tokenizer, OPTIONS)


@pytest.mark.parametrize("held_out", [0, 5])
def test_translations_of_another_number_are_refused(
    corpus: ParallelCorpus, translated: Recipe, tokenizer: Tokenizer, tmp_path: Path, held_out: int
) -> None:
    uneven = ParallelCorpus(corpus.corpus, write(tmp_path / "short", tokenizer, 1, num_documents=39))
    with pytest.raises(InputError, match="one side of the parallel text has"):
        prepare(uneven, translated, tokenizer, OPTIONS.replace(held_out=held_out))


def test_translations_of_another_tokenizer_are_refused(
    corpus: ParallelCorpus, translated: Recipe, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    foreign = write(tmp_path / "foreign", wordpiece_tokenizer(["[UNK]", *(f"v{number}" for number in range(60))]), 1)
    with pytest.raises(FolderError, match="foreign: the corpus was made with the tokenizer"):
        prepare(ParallelCorpus(corpus.corpus, foreign), translated, tokenizer, OPTIONS)
