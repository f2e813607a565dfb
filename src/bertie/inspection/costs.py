"""What a model costs: a model or a recipe enters, FLOPs and bytes leave.

Counted are the FLOPs that the model needs, not those that an implementation spends: every product of a matrix with a
state, and attention over the pairs of a row, whatever is padded or recomputed. Lookups, norms and activations count
nothing, as they are below one in a hundred. A pass backward costs two passes forward.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from bertie.batch import Batch, Pointers
from bertie.machine import peak_flops
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.attention import Attention
from bertie.nn.heads import Classifier, VocabularyHead

FLOAT_BYTES = 4
TRAINING = 3  # passes forward that a step costs


@dataclass(frozen=True)
class ForwardFlops:
    """Of one pass forward, by what they grow with."""

    per_token: int  # linear layers
    per_pair: int  # of a query and a key in the same row: score and mix
    per_prediction: int  # vocabulary heads
    per_row: int  # pooler and classifiers

    def training(self, num_tokens: float, num_pairs: float, num_predictions: float, num_rows: float) -> float:
        """Of a whole training step."""
        pairs, predictions = self.per_pair * num_pairs, self.per_prediction * num_predictions
        return TRAINING * (self.per_token * num_tokens + pairs + predictions + self.per_row * num_rows)

    def training_batch(self, batch: Batch) -> float:
        """Of a step over a real batch, rows of any length."""
        sizes = batch.ragged("tokens").sizes
        pointers = [field for field in batch.fields.values() if isinstance(field, Pointers)]
        num_predictions = sum(len(field.values) for field in pointers)
        return self.training(sum(sizes), sum(size * size for size in sizes), num_predictions, len(sizes))


def forward_flops(model: Model) -> ForwardFlops:
    """A head that is neither over the vocabulary nor a classifier is taken to see every token."""
    pooler = 0 if model.encoder.pooler is None else matrix_flops(model.encoder.pooler)
    heads = list(model.heads.values())
    predictions = sum(matrix_flops(head) for head in heads if isinstance(head, VocabularyHead))
    rows = sum(matrix_flops(head) for head in heads if isinstance(head, Classifier))
    everywhere = matrix_flops(model.encoder) - pooler + sum(map(matrix_flops, heads)) - predictions - rows
    return ForwardFlops(everywhere, _pair_flops(model), predictions, pooler + rows)


def matrix_flops(module: nn.Module) -> int:
    """Of all products of a matrix with one state. A part that is shared by several places works in each of them."""
    parts = [part for _, part in module.named_modules(remove_duplicate=False) if not isinstance(part, nn.Embedding)]
    matrices = (own for part in parts for own in part.parameters(recurse=False) if own.ndim == 2)
    return 2 * sum(matrix.numel() for matrix in matrices)


def _pair_flops(model: Model) -> int:
    parts = [part for _, part in model.named_modules(remove_duplicate=False) if isinstance(part, Attention)]
    return sum(2 * 2 * part.output.in_features for part in parts)


def training_flops_per_token(model: Model | Recipe, length: int, predicted_share: float | None = None) -> float:
    """On full rows of a length. `predicted_share` is that of the objectives where it is not given."""
    if isinstance(model, Recipe):
        with torch.device("meta"):
            model = Model(model)
    share = rate_of(model.recipe) if predicted_share is None else predicted_share
    return forward_flops(model).training(1, length, share, 1 / length)


def rate_of(recipe: Recipe) -> float:
    """The share of tokens that the objectives predict."""
    return sum(float(getattr(objective, "rate", 0.0)) for objective in recipe.objectives)


def pace_at_peak(model: Model, precision: str = "float32", num_processes: int = 1) -> Callable[[int], float] | None:
    """Rows of a length -> tokens a second, if training ran as fast as matrix products do in so many processes. None
    where their speed is not known."""
    peak = peak_flops(precision)
    if peak is None:
        return None
    return cache(lambda length: num_processes * peak / training_flops_per_token(model, length))


# --- memory


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes, without what Python and its libraries take."""

    parameters: int
    gradients: int
    optimiser: int  # two moments a parameter
    activations: int  # of one micro-batch, as autograd keeps them

    @property
    def total(self) -> int:
        return self.parameters + self.gradients + self.optimiser + self.activations


def training_memory(model: Model, batch: Batch) -> TrainingMemory:
    """Runs the model forward over a micro-batch and looks at what is kept."""
    size = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    learned = sum(parameter.numel() * FLOAT_BYTES for parameter in model.parameters() if parameter.requires_grad)
    return TrainingMemory(size, learned, 2 * learned, activation_bytes(model, batch))


def activation_bytes(model: Model, batch: Batch) -> int:
    """What autograd keeps of a pass forward, each memory once and the weights not at all."""
    own = set(map(_address, [*model.parameters(), *model.buffers(), *_tensors(batch)]))
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.device.type != "meta" and _address(tensor) not in own:
            kept[_address(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    model.train()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        report = model.loss(batch)  # as long as it lives, no memory is given to another tensor
    del report
    return sum(kept.values())


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _tensors(batch: Batch) -> Iterable[Tensor]:
    return (batch.tensor(name) for name in batch.fields)
