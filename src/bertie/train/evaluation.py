"""Held-out batches enter, figures leave: losses, accuracies, perplexity, beside what predicting by frequency costs."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from bertie.batch import Batch
from bertie.data.samples.source import Documents, Samples
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.train.loop import total

TARGETS = "masked_targets"
PREDICTION_LOSSES = ("masked_lm", "permutation_lm")  # that say what predicting those targets costs
COUNTED = 5_000_000  # tokens that tell the frequencies; more would change nothing
COUNTED_ROWS = 50_000


class Evaluation:
    """`evaluation(model)` gives figures by name; `baseline` is what a model that knows only frequencies would get."""

    def __init__(self, batches: Sequence[Batch], frequencies: np.ndarray):
        self.batches = batches
        self.baseline = unigram_figures(batches, frequencies)

    def __call__(self, model: Model) -> dict[str, float]:
        was_training = model.training
        model.eval()
        with torch.inference_mode():
            report = total([model.loss(batch) for batch in self.batches])
        model.train(was_training)
        figures = {"loss": float(report.loss()), **report.means()}
        if (cost := prediction_loss(figures)) is not None:
            figures["perplexity"] = math.exp(min(cost, 700.0))
        return {**figures, **self.baseline}

    keeps_best = False

    @staticmethod
    def rank(figures: Mapping[str, float]) -> float:
        return figures["loss"]

    @staticmethod
    def warning(figures: Mapping[str, float]) -> str | None:
        """None also where there is nothing to compare with."""
        cost = prediction_loss(figures)
        if cost is None or cost < figures.get("unigram_loss", math.inf):
            return None
        return "not better than predicting by frequency alone"

    def tuned(self, model: Model) -> Recipe:
        return model.recipe


def prediction_loss(figures: Mapping[str, float]) -> float | None:
    return next((figures[name] for name in PREDICTION_LOSSES if name in figures), None)


def token_frequencies(documents: Documents, vocab_size: int) -> np.ndarray:
    """[V] how often each token comes; of a large corpus in documents spread evenly over it."""
    num_tokens = int(documents.lengths.sum())
    stride = max(1, num_tokens // COUNTED)
    counts = np.zeros(vocab_size, np.int64)
    for number in range(0, documents.num_documents, stride):
        counts += np.bincount(documents.document(number).ids, minlength=vocab_size)
    return counts


def target_frequencies(samples: Samples, vocab_size: int) -> np.ndarray:
    """[V] how often each token is to be predicted in samples that were masked already."""
    stride = max(1, samples.num_samples // COUNTED_ROWS)
    counts = np.zeros(vocab_size, np.int64)
    for number in range(0, samples.num_samples, stride):
        counts += np.bincount(np.asarray(samples.sample(0, 0, number).get(TARGETS, ())), minlength=vocab_size)
    return counts


def unigram_figures(batches: Sequence[Batch], frequencies: np.ndarray) -> dict[str, float]:
    """The loss and accuracy of predicting each hidden token by frequency; a token never seen counts as seen once."""
    if not batches or TARGETS not in batches[0]:
        return {}
    targets = np.concatenate([batch.tensor(TARGETS).numpy() for batch in batches])
    smoothed = np.maximum(frequencies, 1)
    losses = np.log(smoothed.sum()) - np.log(smoothed[targets])
    return {"unigram_loss": float(losses.mean()), "unigram_accuracy": float((targets == frequencies.argmax()).mean())}
