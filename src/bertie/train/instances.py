"""Numbered samples and a recipe's objectives enter, the micro-batches of any step leave, corrupted and collated."""

from collections.abc import Sequence

import numpy as np

from bertie.batch import Batch, Sample, collate
from bertie.data.batching import Batches, TokenBudget, batches_by_length
from bertie.data.plan import EpochPlan
from bertie.data.samples.source import Samples, generator
from bertie.data.shapes import SampleShape
from bertie.errors import SpecError
from bertie.models.recipe import Recipe
from bertie.objectives.objective import Objective, Vocabulary
from bertie.text.tokenizer import Tokenizer


def sample_shape(recipe: Recipe, length: int) -> SampleShape:
    """The one shape of sample that all objectives of a recipe eat, with rows of this length."""
    shapes = {objective.samples.to_json(): objective.samples for objective in recipe.objectives}
    if not shapes:
        raise SpecError("the model has no objective to be trained by", hint="choose a recipe that has one")
    if len(shapes) > 1:
        kinds = ", ".join(objective.kind for objective in recipe.objectives)
        raise SpecError(f"the objectives {kinds} eat {len(shapes)} shapes of sample, one was expected")
    tables = recipe.encoder.embeddings
    if "positions" in tables.fields:
        limit = tables.table("positions").size - tables.table("positions").offset
        if length > limit:
            raise SpecError(f"rows of {length:,} tokens are longer than the model takes", hint=f"at most {limit:,}")
    shape: SampleShape = next(iter(shapes.values())).replace(length=length)
    return shape


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    """Of the tokens there are: a model may have more rows, and they are never put in place of a token."""
    return Vocabulary(tokenizer.size, tokenizer.special.mask, frozenset(tokenizer.special.ids()))


class Corruption:
    """What all objectives do to a sample, one after another; picklable, as other processes may do it."""

    def __init__(self, objectives: Sequence[Objective], vocabulary: Vocabulary):
        self.objectives, self.vocabulary = tuple(objectives), vocabulary

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        for objective in self.objectives:
            sample = objective.corrupt(sample, self.vocabulary, rng)
        # Words have done their service.
        return {name: value for name, value in sample.items() if name != "words"}


class Instances:
    """`instances(step)`: a step's micro-batches, a pure function of the step."""

    def __init__(self, samples: Samples, corruption: Corruption, batch_tokens: int, micro_tokens: int, seed: int):
        plan = EpochPlan(samples, TokenBudget(tokens=batch_tokens), seed)
        self.steps_per_epoch = plan.steps_per_epoch
        self.micro_tokens = micro_tokens
        self._batches = Batches(samples, plan, seed, corruption)

    def __call__(self, step: int) -> list[Batch]:
        return split_rows(self._batches.rows(step), self.micro_tokens)


def fixed_instances(samples: Samples, corruption: Corruption, num_rows: int, micro_tokens: int) -> list[Batch]:
    """Rows spread evenly over all samples, the same for every run: what is measured on."""
    numbers = np.unique(np.linspace(0, samples.num_samples - 1, num_rows).astype(np.int64)).tolist()
    rows = [corruption(samples.sample(0, 0, number), generator(0, 0, number, "corrupt")) for number in numbers]
    return split_rows(rows, micro_tokens)


def split_rows(rows: Sequence[Sample], micro_tokens: int) -> list[Batch]:
    """Rows of similar length together, as kernels like it."""
    lengths = np.array([len(row["tokens"]) for row in rows])  # type: ignore[arg-type]
    return [collate([rows[row] for row in part]) for part in batches_by_length(lengths, micro_tokens)]
