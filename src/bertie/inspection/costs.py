"""Computes what a model costs: FLOPs and bytes.

Counted are the FLOPs that the model needs, not those that an implementation spends: every product of a matrix with a
state, and attention over the pairs of a row that may see each other, whatever is padded or recomputed; of the last
feed-forward only what is read. Lookups, norms and activations are not counted: they are below one percent. A backward
pass costs two forward passes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor, nn

from bertie.batch import Batch, Pointers
from bertie.devices import device_of
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.attention.attention import Attention
from bertie.nn.attention.relative import Relative
from bertie.nn.encoder import Encoder
from bertie.nn.heads import Classifier, VocabularyHead
from bertie.nn.stack import Block, LayerStack, Stack
from bertie.nn.visibility import And, AntiCausal, Causal, Full, Visibility, Window
from bertie.objectives.distillation import Student
from bertie.objectives.objective import FIRST, fields_read, positions_in
from bertie.objectives.permutation_lm import TwoStreams
from bertie.objectives.replaced_tokens import Generator
from bertie.objectives.span_boundary import Boundary
from bertie.peak import peak_flops

FLOAT_BYTES = 4
TRAINING = 3  # forward passes that a step costs
LOOKED_UP = (nn.Embedding, Relative)  # tables, of tokens and of distances: nothing is multiplied with them


@dataclass(frozen=True)
class ForwardFlops:
    """The FLOPs of one forward pass, by what they grow with."""

    per_token: int  # linear layers
    per_pair: Mapping[Visibility, int]  # score and mix of a query and a key, by visibility of the layers
    per_prediction: int  # vocabulary heads, and a separate stream of queries
    per_row: int  # pooler and classifiers
    per_predicted_pair: int = 0  # of a query in a separate stream and a key
    per_read: int = 0  # the last feed-forward, for each token whose last state is read
    read_positions: tuple[str, ...] = ()  # of the objectives
    teacher: "ForwardFlops | None" = None  # which runs beside the model and is not trained

    def forward(self, sizes: Sequence[int], num_predictions: float) -> float:
        """Counts rows of these sizes. Each objective that predicts is assumed to read other tokens than the rest."""
        pointers = [name for name in self.read_positions if name != FIRST]
        num_read = min(num_predictions * len(pointers) + len(sizes) * (FIRST in self.read_positions), sum(sizes))
        return self._forward(sizes, num_predictions, num_read)

    def _forward(self, sizes: Sequence[int], num_predictions: float, num_read: float) -> float:
        pairs = sum(
            flops * sum(num_pairs(visibility, size) for size in sizes) for visibility, flops in self.per_pair.items()
        )
        # Predictions are spread evenly over all tokens.
        predicted = num_predictions * sum(size * size for size in sizes) / max(1, sum(sizes))
        return (
            self.per_token * sum(sizes)
            + pairs
            + self.per_predicted_pair * predicted
            + self.per_prediction * num_predictions
            + self.per_row * len(sizes)
            + self.per_read * num_read
        )

    def training(self, sizes: Sequence[int], num_predictions: float) -> float:
        """Counts a whole training step."""
        return TRAINING * self.forward(sizes, num_predictions) + self._teaching(sizes, num_predictions)

    def _teaching(self, sizes: Sequence[int], num_predictions: float) -> float:
        return self.teacher.forward(sizes, num_predictions) if self.teacher else 0.0

    def training_batch(self, batch: Batch) -> float:
        """Counts a step over a real batch. Several objectives predict the same tokens: the largest number counts."""
        pointers = [field for field in batch.fields.values() if isinstance(field, Pointers)]
        num_predictions, sizes = max((len(field.values) for field in pointers), default=0), batch.row_sizes
        num_read = len(positions_in(self.read_positions, batch)) if self.read_positions else 0
        return TRAINING * self._forward(sizes, num_predictions, num_read) + self._teaching(sizes, num_predictions)


def forward_flops(model: Model) -> ForwardFlops:
    """Counts a forward pass. A part of a head that is neither over the vocabulary nor a classifier, and a decoder, are
    taken to see every token."""
    beside = [*model.heads.values(), *([] if model.decoder is None else [model.decoder])]
    own = _flops_of(model.encoder, beside, fields_read(model.recipe.objectives))
    teaching = [_flops_of(encoder, [head]) for encoder, head in teachers(model)]
    return replace(own, teacher=teaching[0]) if teaching else own


def _flops_of(encoder: Encoder, heads: list[nn.Module], read_positions: tuple[str, ...] | None = None) -> ForwardFlops:
    pooler = 0 if encoder.pooler is None else matrix_flops(encoder.pooler)
    predictions = sum(map(matrix_flops, outermost(heads, (VocabularyHead, Boundary))))
    rows = sum(map(matrix_flops, outermost(heads, Classifier)))
    pooled = pooler if rows else 0  # only classifiers read it
    everywhere = matrix_flops(encoder) - pooler + sum(map(matrix_flops, heads)) - predictions - rows
    pairs = sum(map(pair_flops, [encoder, *heads]), Counter())
    if not outermost(heads, TwoStreams):
        # A generator's states are read only where it predicts.
        generators = [part for part in outermost(heads, Generator) if isinstance(part, Generator)]
        predicted_last = sum(last_feed_forward(part.encoder) for part in generators)
        read_last = last_feed_forward(encoder) if read_positions is not None else 0
        return ForwardFlops(
            everywhere - predicted_last - read_last,
            pairs,
            predictions + predicted_last,
            pooled + rows,
            per_read=read_last,
            read_positions=read_positions or (),
        )
    # Queries pass all layers at predicted tokens; the last layer's output for all other tokens is never read.
    assert isinstance(encoder.stack, Stack)
    *_, last = encoder.stack.blocks
    queries = [query_flops(block) for block in encoder.stack.blocks]
    return ForwardFlops(
        everywhere - query_flops(last),
        pairs - pair_flops(last),
        predictions + sum(queries),
        pooled + rows,
        pairs.total(),
    )


def last_feed_forward(encoder: Encoder) -> int:
    """Counts one state in the last block, or in the last one of each direction."""
    lasts = [layer.block for layers in encoder.stack.layers()[-1:] for layer in layers]
    parts = [block.feed_forward for block in lasts if isinstance(block, Block)]
    return sum(matrix_flops(part) for part in parts if part is not None)


def outermost(modules: Iterable[nn.Module], kinds: type | tuple[type, ...]) -> list[nn.Module]:
    """Returns the parts of these classes that are not inside another of them."""
    found = []
    for module in modules:
        found += [module] if isinstance(module, kinds) else outermost(module.children(), kinds)
    return found


def teachers(model: Model) -> list[tuple[Encoder, VocabularyHead]]:
    """Returns encoder and head of the model's teacher, where it has one."""
    students = [head for head in model.heads.values() if isinstance(head, Student)]
    return [head.teacher for head in students if head.teacher is not None]


def matrix_flops(module: nn.Module) -> int:
    """Counts all products of a matrix with one state. A shared part counts in each place where it runs."""
    parts = dict(module.named_modules(remove_duplicate=False))
    apart = tuple(f"{name}." for name, part in parts.items() if isinstance(part, LOOKED_UP))
    working = [part for name, part in parts.items() if not f"{name}.".startswith(apart)]
    matrices = (own for part in working for own in part.parameters(recurse=False) if own.ndim == 2)
    return 2 * sum(matrix.numel() for matrix in matrices)


def query_flops(block: nn.Module) -> int:
    """Counts a query alone, whose keys and values are computed already."""
    attention = [part for part in block.modules() if isinstance(part, Attention)]
    keys = sum(2 * (part.key.weight.numel() + part.value.weight.numel()) for part in attention)
    return matrix_flops(block) - keys


def pair_flops(module: nn.Module, visibility: Visibility = Full()) -> Counter[Visibility]:  # noqa: B008 - frozen
    """Counts a query and a key over all layers, by the layers' visibility. A relative score is a second product."""
    parts: list[tuple[nn.Module, Visibility]]
    match module:
        case Attention():
            products = 3 if outermost([module], Relative) else 2
            return Counter({visibility: 2 * products * module.output.in_features})
        case LayerStack():
            parts = [(layer.block, layer.visibility) for layers in module.layers() for layer in layers]
        case _:
            parts = [(child, Full()) for child in module.children()]
    return sum((pair_flops(part, visibility & seen) for part, seen in parts), Counter())


def num_pairs(visibility: Visibility, size: int) -> int:
    """Counts the pairs in a row of this size. Of kinds that are not known here all pairs count."""
    match visibility:
        case Window():
            steps = min(visibility.reach, (size - 1) // visibility.dilation)
            return size + 2 * steps * size - visibility.dilation * steps * (steps + 1)
        case Causal() | AntiCausal():
            return size * (size + 1) // 2
        case And():
            return min(num_pairs(part, size) for part in visibility.parts)
        case _:
            return size * size


def training_flops_per_token(model: Model | Recipe, length: int, predicted_share: float | None = None) -> float:
    """Counts full rows of a length. `predicted_share` defaults to that of the objectives."""
    if isinstance(model, Recipe):
        with torch.device("meta"):
            model = Model(model)
    share = rate_of(model.recipe) if predicted_share is None else predicted_share
    return forward_flops(model).training([length], share * length) / length


def rate_of(recipe: Recipe) -> float:
    """Returns the share of tokens that the objectives predict; several predict the same tokens."""
    return max((float(getattr(objective, "rate", 0.0)) for objective in recipe.objectives), default=0.0)


def pace_at_peak(model: Model, precision: str = "float32", num_processes: int = 1) -> Callable[[int], float] | None:
    """Returns a function from row length to tokens a second, if training ran as fast as matrix products do in so many
    processes. None where their speed is not known."""
    peak = peak_flops(precision)
    if peak is None:
        return None
    return cache(lambda length: num_processes * peak / training_flops_per_token(model, length))


# --- memory


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes, without those of Python and its libraries."""

    parameters: int  # a teacher's included
    gradients: int
    optimizer: int  # two moments a parameter
    activations: int  # of one micro-batch, as autograd keeps them

    @property
    def total(self) -> int:
        return self.parameters + self.gradients + self.optimizer + self.activations


def training_memory(model: Model, batch: Batch) -> TrainingMemory:
    """Runs the model forward over a micro-batch and measures what is kept."""
    modules: list[nn.Module] = [model, *(part for teacher in teachers(model) for part in teacher)]
    weights = {id(one): one for module in modules for one in module.parameters()}  # tied ones are one
    size = sum(one.numel() * one.element_size() for one in weights.values())
    learned = sum(parameter.numel() * FLOAT_BYTES for parameter in model.parameters() if parameter.requires_grad)
    return TrainingMemory(size, learned, 2 * learned, activation_bytes(model, batch.to(device_of(model))))


def activation_bytes(model: Model, batch: Batch) -> int:
    """Counts what autograd keeps of a forward pass, each storage once, without the weights."""
    own = set(map(_address, [*model.parameters(), *model.buffers(), *_tensors(batch)]))
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.device.type != "meta" and _address(tensor) not in own:
            kept[_address(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    model.train()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        report = model.loss(batch)  # while it lives, no storage is reused for another tensor
    del report
    return sum(kept.values())


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _tensors(batch: Batch) -> Iterable[Tensor]:
    return (batch.tensor(name) for name in batch.fields)
