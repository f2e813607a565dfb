"""What a run needs of its options, its data and its evaluation; pre-training and fine-tuning provide it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bertie.batch import Batch
from bertie.data.data_schedule import Cursor
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.products.choice import Precision
from bertie.train.budget import AnyBudget
from bertie.train.learning.adversarial import AnyAdversary
from bertie.train.learning.learning_rates import LearningSpec
from bertie.train.learning.optimizer import AnyOptimizer
from bertie.train.learning.schedule import AnySchedule


class RunOptions(Protocol):
    @property
    def budget(self) -> AnyBudget: ...
    @property
    def seed(self) -> int: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def optimizer(self) -> AnyOptimizer: ...
    @property
    def clip(self) -> float: ...
    @property
    def schedule(self) -> AnySchedule: ...
    @property
    def save_every(self) -> int: ...
    @property
    def keep(self) -> int: ...
    @property
    def eval_every(self) -> int: ...
    @property
    def log_every(self) -> int: ...
    @property
    def adversary(self) -> AnyAdversary | None: ...
    @property
    def learning(self) -> LearningSpec | None:
        """None: all weights learn at one rate."""

    @property
    def patience(self) -> int | None:
        """Evaluations without a better one, after which the run ends."""


class Measure(Protocol):
    """`measure(model)` gives figures by name, the `loss` among them."""

    keeps_best: bool
    """Whether the best model that was measured is written at the end; else it is the last."""

    def __call__(self, model: Model) -> dict[str, float]: ...

    def rank(self, figures: Mapping[str, float]) -> float:
        """Lower is better."""

    def warning(self, figures: Mapping[str, float]) -> str | None:
        """A sentence where the model is no better than one that learned nothing."""

    def tuned(self, model: Model) -> Recipe:
        """The recipe with what is chosen by measuring, such as thresholds, which is used from now on."""


class RunDataSchedule(Protocol):
    def enter(self, place: Cursor | None, progress: float) -> Cursor: ...

    def after(self, place: Cursor) -> Cursor: ...


class RunSource(Protocol):
    @property
    def data_schedule(self) -> RunDataSchedule: ...
    @property
    def evaluation(self) -> Measure | None: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def start(self) -> Cursor: ...
    @property
    def card(self) -> Mapping[str, Any]:
        """What is written about it in the model folder."""

    @property
    def rows_continue(self) -> bool:
        """Whether row b of each step continues row b of the step before it, so that the model's memory of it holds."""

    def instances(self, place: Cursor) -> Sequence[Batch]:
        """The micro-batches of the step that starts at a place."""

    def take_counts(self) -> Mapping[str, int]:
        """Counts of what was done to the rows since the last call, where that cannot be known before; the names are
        always the same. Counts of all steps and ranks are added up."""

    def describe_counts(self, counts: Mapping[str, int]) -> Sequence[str]:
        """The sums, as sentences for the summary."""
