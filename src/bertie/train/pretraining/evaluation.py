"""Turns held-out batches into figures: losses, accuracies, perplexity, and the baseline of predicting by frequency."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from bertie.batch import Batch
from bertie.data.samples.sample_protocols import Documents, Samples
from bertie.devices import device_of
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.objectives.loss_report import LossReport
from bertie.objectives.objective import Prediction

COUNTED = 5_000_000  # tokens that frequencies are counted on; more would change nothing
COUNTED_ROWS = 50_000


class Evaluation:
    """`evaluation(model)` returns figures by name; `baseline` is what a model that knows only frequencies would get."""

    keeps_best = False

    def __init__(self, batches: Sequence[Batch], frequencies: np.ndarray, prediction: Prediction | None):
        self.batches, self.prediction = batches, prediction
        self.baseline = unigram_figures(batches, frequencies, prediction)

    def __call__(self, model: Model) -> dict[str, float]:
        was_training = model.training
        model.eval()
        with torch.inference_mode():
            device = device_of(model)
            report = sum((model.loss(batch.to(device)) for batch in self.batches), LossReport()).fetched()
        model.train(was_training)
        figures = {"loss": float(report.loss()), **report.means()}
        if (cost := self.prediction_loss(figures)) is not None:
            figures["perplexity"] = math.exp(min(cost, 700.0))
        return {**figures, **self.baseline}

    @staticmethod
    def rank(figures: Mapping[str, float]) -> float:
        return figures["loss"]

    def warning(self, figures: Mapping[str, float]) -> str | None:
        """Returns None also where there is nothing to compare with."""
        cost = self.prediction_loss(figures)
        if cost is None or cost < figures.get("unigram_loss", math.inf):
            return None
        return "not better than predicting by frequency alone"

    def prediction_loss(self, figures: Mapping[str, float]) -> float | None:
        return None if self.prediction is None else figures.get(self.prediction.loss)

    def tuned(self, model: Model) -> Recipe:
        return model.recipe


def prediction_of(recipe: Recipe) -> Prediction | None:
    """Returns the first of its objectives' predictions that has a baseline, as it is named in figures."""
    for objective in recipe.objectives:
        if objective.prediction is not None:
            return Prediction(objective.prefix + objective.prediction.loss, objective.prediction.targets)
    return None


def token_frequencies(documents: Documents, vocab_size: int) -> np.ndarray:
    """Returns [V], how often each token comes; of a large corpus in documents spread evenly over it."""
    num_tokens = int(documents.lengths.sum())
    stride = max(1, num_tokens // COUNTED)
    counts = np.zeros(vocab_size, np.int64)
    for number in range(0, documents.num_documents, stride):
        counts += np.bincount(documents.document(number).ids, minlength=vocab_size)
    return counts


def target_frequencies(samples: Samples, vocab_size: int, prediction: Prediction | None) -> np.ndarray:
    """Returns [V], how often each token is to be predicted in samples that were masked before."""
    counts = np.zeros(vocab_size, np.int64)
    if prediction is None:
        return counts
    stride = max(1, samples.num_samples // COUNTED_ROWS)
    for number in range(0, samples.num_samples, stride):
        targets = np.asarray(samples.sample(0, 0, number).get(prediction.targets, ()))
        counts += np.bincount(targets, minlength=vocab_size)
    return counts


def unigram_figures(
    batches: Sequence[Batch], frequencies: np.ndarray, prediction: Prediction | None
) -> dict[str, float]:
    """Returns loss and accuracy of predicting each token by frequency; a token never seen counts as seen once."""
    if prediction is None or not batches or prediction.targets not in batches[0]:
        return {}
    targets = np.concatenate([batch.tensor(prediction.targets).numpy() for batch in batches])
    smoothed = np.maximum(frequencies, 1)
    losses = np.log(smoothed.sum()) - np.log(smoothed[targets])
    return {"unigram_loss": float(losses.mean()), "unigram_accuracy": float((targets == frequencies.argmax()).mean())}
