"""What a run asks of its options, its data and its measurement: pre-training answers, and fine-tuning."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bertie.batch import Batch
from bertie.data.course import Place
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.train.adversarial import AnyAdversary
from bertie.train.budget import AnyBudget
from bertie.train.learning_rates import LearningSpec
from bertie.train.loop import Precision
from bertie.train.optimiser import AdamWSpec
from bertie.train.schedule import AnySchedule


class RunOptions(Protocol):
    @property
    def budget(self) -> AnyBudget: ...
    @property
    def seed(self) -> int: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def adamw(self) -> AdamWSpec: ...
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
    """Whether the model that leaves is the best that was measured; else it is the last."""

    def __call__(self, model: Model) -> dict[str, float]: ...

    def rank(self, figures: Mapping[str, float]) -> float:
        """Lower is better."""

    def warning(self, figures: Mapping[str, float]) -> str | None:
        """Where the model is not better than one that learned nothing: what to say."""

    def tuned(self, model: Model) -> Recipe:
        """The recipe with what is chosen by measuring, such as thresholds; that is measured from now on."""


class RunCourse(Protocol):
    def enter(self, place: Place | None, progress: float) -> Place: ...

    def after(self, place: Place) -> Place: ...


class RunSource(Protocol):
    @property
    def course(self) -> RunCourse: ...
    @property
    def evaluation(self) -> Measure | None: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def beginning(self) -> Place: ...
    @property
    def card(self) -> Mapping[str, Any]:
        """What the model folder says of it."""

    def instances(self, place: Place) -> Sequence[Batch]:
        """The micro-batches of the step that begins at a place."""

    def take_counts(self) -> Mapping[str, int]:
        """What was done to the rows since the last call, where that cannot be known before; the names are always the
        same. Counts of all steps and ranks are added up."""

    def told(self, counts: Mapping[str, int]) -> Sequence[str]:
        """The sums, in sentences for the summary."""
