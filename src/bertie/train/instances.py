"""Turns numbered samples into the micro-batches of any step: corrupted by a recipe's objectives and collated."""

from collections.abc import Sequence

import numpy as np

from bertie.batch import Batch, Sample, collate, num_sample_tokens
from bertie.data.batching import Batches, batches_by_length
from bertie.data.data_schedule import Cursor, DataSchedule
from bertie.data.samples.sample_protocols import Samples, generator
from bertie.data.shapes import SampleShape
from bertie.errors import SpecError
from bertie.models.recipe import Recipe
from bertie.objectives.objective import Objective, Vocabulary
from bertie.text.tokenizers.tokenizer import Tokenizer


def sample_shape(recipe: Recipe, length: int) -> SampleShape:
    """The one shape of sample that all objectives of a recipe eat, with rows of this length."""
    wanted = [objective.samples for objective in recipe.objectives]
    shapes = {shape.to_json(): shape for shape in wanted if shape is not None}  # tasks bring rows of their own
    if not shapes:
        raise SpecError("the model has no objective to be trained by", hint="choose a recipe that has one")
    if len(shapes) > 1:
        kinds = ", ".join(objective.name for objective in recipe.objectives)
        raise SpecError(f"the objectives {kinds} need {len(shapes)} sample shapes; only one is supported")
    limit = recipe.encoder.embeddings.max_length
    if limit is not None and length > limit:
        raise SpecError(f"rows of {length:,} tokens are longer than the model takes", hint=f"at most {limit:,}")
    shape: SampleShape = next(iter(shapes.values())).replace(length=length)
    return shape


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    """Of the tokenizer's own tokens: a model may have more rows, which never replace a token."""
    return Vocabulary(tokenizer.size, tokenizer.special.mask, frozenset(tokenizer.special.ids()))


class Corruption:
    """What all objectives do to a sample, one after another; picklable, as other processes may do it."""

    def __init__(self, objectives: Sequence[Objective], vocabulary: Vocabulary):
        self.objectives, self.vocabulary = tuple(objectives), vocabulary

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        for objective in self.objectives:
            sample = objective.corrupt(sample, self.vocabulary, rng)
        # Words are needed no longer.
        return {name: value for name, value in sample.items() if name != "words"}


class Instances:
    """`instances(place)`: the micro-batches of the step that starts at a place, a pure function of it."""

    def __init__(
        self,
        data_schedule: DataSchedule,
        corruption: Corruption | None,
        micro_tokens: int,
        seed: int,
        *,
        num_masks: int | None = None,
        rank: int = 0,
        num_ranks: int = 1,
    ):
        """Without a corruption the samples are masked already. With `num_masks` every sample returns with the masks and
        the partner that it had so many epochs ago. Each of `num_ranks` processes takes its share of a step's rows."""
        self.data_schedule, self.micro_tokens, self.num_masks = data_schedule, micro_tokens, num_masks
        self.rank, self.num_ranks = rank, num_ranks
        self._phases = [Batches(plan.samples, plan, seed, corruption) for plan in data_schedule.plans]
        self.rows_continue = not any(plan.samples.shuffled for plan in data_schedule.plans)
        if self.rows_continue and num_masks:
            raise SpecError(
                "`static_masks` cannot be used with rows that continue each other", hint="leave out `static_masks`"
            )

    def __call__(self, place: Cursor) -> list[Batch]:
        phase = self._phases[place.phase]
        keys = self.data_schedule.rows(place)[self.rank :: self.num_ranks]
        rows = [phase.row(epoch % self.num_masks if self.num_masks else epoch, index) for epoch, index in keys]
        if not self.rows_continue:
            return split_rows(rows, self.micro_tokens)
        # They are of one length, and stay in order: row b continues row b.
        count = max(1, self.micro_tokens // num_sample_tokens(rows[0]))
        return [collate(rows[first : first + count]) for first in range(0, len(rows), count)]


def fixed_instances(samples: Samples, corruption: Corruption | None, num_rows: int, micro_tokens: int) -> list[Batch]:
    """Rows spread evenly over all samples, the same for every run: for evaluation."""
    numbers = np.unique(np.linspace(0, samples.num_samples - 1, num_rows).astype(np.int64)).tolist()
    rows = [samples.sample(0, 0, number) for number in numbers]
    if corruption is not None:
        rows = [corruption(row, generator(0, 0, number, "corrupt")) for number, row in zip(numbers, rows, strict=True)]
    return split_rows(rows, micro_tokens)


def split_rows(rows: Sequence[Sample], micro_tokens: int) -> list[Batch]:
    """Puts rows of similar length together, which is fast."""
    lengths = np.array([num_sample_tokens(row) for row in rows])
    return [collate([rows[row] for row in part]) for part in batches_by_length(lengths, micro_tokens)]
