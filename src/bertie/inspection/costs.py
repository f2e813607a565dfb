"""What a model costs: a model or a recipe enters, FLOPs and bytes leave.

Counted are the FLOPs that the model needs, not those that an implementation spends: every product of a matrix with a
state, and attention over the pairs of a row that may see each other, whatever is padded or recomputed; of the last
feed-forward only what somebody looks at. Lookups, norms and activations count nothing, as they are below one in a
hundred. A pass backward costs two passes forward.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor, nn

from bertie.batch import Batch, Pointers
from bertie.machine import peak_flops
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.attention import Attention
from bertie.nn.encoder import Encoder
from bertie.nn.heads import Classifier, VocabularyHead
from bertie.nn.relative import Relative
from bertie.nn.stack import Block, Stack
from bertie.nn.two_directions import TwoDirections
from bertie.nn.visibility import And, Causal, Following, Full, Visibility, Window
from bertie.objectives.distillation import Student
from bertie.objectives.objective import FIRST, fields_looked_at, places_in
from bertie.objectives.permutation_lm import TwoStreams
from bertie.objectives.replaced_tokens import Generator
from bertie.objectives.span_boundary import Boundary

FLOAT_BYTES = 4
TRAINING = 3  # passes forward that a step costs
LOOKED_UP = (nn.Embedding, Relative)  # no token is multiplied with them: tables, and what is known of distances


@dataclass(frozen=True)
class ForwardFlops:
    """Of one pass forward, by what they grow with."""

    per_token: int  # linear layers
    per_pair: Mapping[Visibility, int]  # of a query and a key that it sees: score and mix, by what layers see
    per_prediction: int  # vocabulary heads, and a stream of queries alone
    per_row: int  # pooler and classifiers
    per_predicted_pair: int = 0  # of a query in a stream of its own and a key
    per_look: int = 0  # the last feed-forward, for each token whose last state is looked at
    looks_at: tuple[str, ...] = ()  # as objectives say it
    teacher: "ForwardFlops | None" = None  # that runs beside, and learns nothing

    def forward(self, sizes: Sequence[int], num_predictions: float) -> float:
        """Over rows of these sizes. Each objective that predicts is taken to look at other tokens than the rest."""
        pointers = [name for name in self.looks_at if name != FIRST]
        looks = min(num_predictions * len(pointers) + len(sizes) * (FIRST in self.looks_at), sum(sizes))
        return self._forward(sizes, num_predictions, looks)

    def _forward(self, sizes: Sequence[int], num_predictions: float, num_looks: float) -> float:
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
            + self.per_look * num_looks
        )

    def training(self, sizes: Sequence[int], num_predictions: float) -> float:
        """Of a whole training step."""
        return TRAINING * self.forward(sizes, num_predictions) + self._taught(sizes, num_predictions)

    def _taught(self, sizes: Sequence[int], num_predictions: float) -> float:
        return self.teacher.forward(sizes, num_predictions) if self.teacher else 0.0

    def training_batch(self, batch: Batch) -> float:
        """Of a step over a real batch. Several objectives predict the same places: the most of any are all."""
        pointers = [field for field in batch.fields.values() if isinstance(field, Pointers)]
        num_predictions, sizes = max((len(field.values) for field in pointers), default=0), batch.ragged("tokens").sizes
        looks = len(places_in(self.looks_at, batch)) if self.looks_at else 0
        return TRAINING * self._forward(sizes, num_predictions, looks) + self._taught(sizes, num_predictions)


def forward_flops(model: Model) -> ForwardFlops:
    """A part of a head that is neither over the vocabulary nor a classifier is taken to see every token."""
    own = _flops_of(model.encoder, list(model.heads.values()), fields_looked_at(model.recipe.objectives))
    taught = [_flops_of(encoder, [head]) for encoder, head in teachers(model)]
    return replace(own, teacher=taught[0]) if taught else own


def _flops_of(encoder: Encoder, heads: list[nn.Module], looks_at: tuple[str, ...] | None = None) -> ForwardFlops:
    pooler = 0 if encoder.pooler is None else matrix_flops(encoder.pooler)
    predictions = sum(map(matrix_flops, outermost(heads, (VocabularyHead, Boundary))))
    rows = sum(map(matrix_flops, outermost(heads, Classifier)))
    pooled = pooler if rows else 0  # nobody else asks for it
    everywhere = matrix_flops(encoder) - pooler + sum(map(matrix_flops, heads)) - predictions - rows
    pairs = sum(map(pair_flops, [encoder, *heads]), Counter())
    if not outermost(heads, TwoStreams):
        # A generator's states are looked at where it guesses.
        generators = [part for part in outermost(heads, Generator) if isinstance(part, Generator)]
        guessed = sum(last_feed_forward(part.encoder) for part in generators)
        looked_at = last_feed_forward(encoder) if looks_at is not None else 0
        return ForwardFlops(
            everywhere - guessed - looked_at,
            pairs,
            predictions + guessed,
            pooled + rows,
            per_look=looked_at,
            looks_at=looks_at or (),
        )
    # Queries go through all layers where something is predicted, and nobody sees what the last one makes of the others.
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
    """Of one state in the last block, or in the last one of each direction."""
    stacks = [part for part in outermost([encoder.stack], Stack) if isinstance(part, Stack)]
    lasts = [block for stack in stacks for block in list(stack.blocks)[-1:]]
    parts = [block.feed_forward for block in lasts if isinstance(block, Block)]
    return sum(matrix_flops(part) for part in parts if part is not None)


def outermost(modules: Iterable[nn.Module], kinds: type | tuple[type, ...]) -> list[nn.Module]:
    """The parts of these kinds that lie in no other of them."""
    found = []
    for module in modules:
        found += [module] if isinstance(module, kinds) else outermost(module.children(), kinds)
    return found


def teachers(model: Model) -> list[tuple[Encoder, VocabularyHead]]:
    """Encoder and head of the one that the model learns from, where it is there."""
    students = [head for head in model.heads.values() if isinstance(head, Student)]
    return [head.teacher for head in students if head.teacher is not None]


def matrix_flops(module: nn.Module) -> int:
    """Of all products of a matrix with one state. A part that is shared by several places works in each of them."""
    parts = dict(module.named_modules(remove_duplicate=False))
    apart = tuple(f"{name}." for name, part in parts.items() if isinstance(part, LOOKED_UP))
    working = [part for name, part in parts.items() if not f"{name}.".startswith(apart)]
    matrices = (own for part in working for own in part.parameters(recurse=False) if own.ndim == 2)
    return 2 * sum(matrix.numel() for matrix in matrices)


def query_flops(block: nn.Module) -> int:
    """Of a query alone, whose keys and values are there already."""
    keys = sum(2 * part.project.weight.numel() * 2 // 3 for part in block.modules() if isinstance(part, Attention))
    return matrix_flops(block) - keys


def pair_flops(module: nn.Module, visibility: Visibility = Full()) -> Counter[Visibility]:  # noqa: B008 - frozen
    """Of a query and a key in all layers together, by what each layer sees. A relative score is a second product."""
    parts: list[tuple[nn.Module, Visibility]]
    match module:
        case Attention():
            products = 3 if outermost([module], Relative) else 2
            return Counter({visibility: 2 * products * module.output.in_features})
        case Stack():
            parts = list(zip(module.blocks, module.visibilities, strict=True))
        case TwoDirections():
            parts = [(module.ahead, Causal()), (module.back, Following())]
        case _:
            parts = [(child, Full()) for child in module.children()]
    return sum((pair_flops(part, visibility & seen) for part, seen in parts), Counter())


def num_pairs(visibility: Visibility, size: int) -> int:
    """In a row of this size. What is not known here may see all."""
    match visibility:
        case Window():
            steps = min(visibility.reach, (size - 1) // visibility.dilation)
            return size + 2 * steps * size - visibility.dilation * steps * (steps + 1)
        case Causal() | Following():
            return size * (size + 1) // 2
        case And():
            return min(num_pairs(part, size) for part in visibility.parts)
        case _:
            return size * size


def training_flops_per_token(model: Model | Recipe, length: int, predicted_share: float | None = None) -> float:
    """On full rows of a length. `predicted_share` is that of the objectives where it is not given."""
    if isinstance(model, Recipe):
        with torch.device("meta"):
            model = Model(model)
    share = rate_of(model.recipe) if predicted_share is None else predicted_share
    return forward_flops(model).training([length], share * length) / length


def rate_of(recipe: Recipe) -> float:
    """The share of tokens that the objectives predict; several predict the same."""
    return max((float(getattr(objective, "rate", 0.0)) for objective in recipe.objectives), default=0.0)


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

    parameters: int  # those of a teacher too
    gradients: int
    optimiser: int  # two moments a parameter
    activations: int  # of one micro-batch, as autograd keeps them

    @property
    def total(self) -> int:
        return self.parameters + self.gradients + self.optimiser + self.activations


def training_memory(model: Model, batch: Batch) -> TrainingMemory:
    """Runs the model forward over a micro-batch and looks at what is kept."""
    modules: list[nn.Module] = [model, *(part for teacher in teachers(model) for part in teacher)]
    weights = {id(one): one for module in modules for one in module.parameters()}  # tied ones are one
    size = sum(one.numel() * one.element_size() for one in weights.values())
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
