"""Turns a corpus, plain or frozen, and a recipe into instances to train on and batches to evaluate on.

Whatever does not fit together is refused here, before anything is computed or written.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bertie.batch import Batch
from bertie.data.corpus import Corpus, check_tokenizer
from bertie.data.data_schedule import Cursor, DataSchedule, Stage, stages_of
from bertie.data.frozen_corpus import FrozenCorpus
from bertie.data.parallel_corpus import ParallelCorpus
from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.samples.parallel import ParallelSamples
from bertie.data.samples.sample_protocols import Documents, Samples
from bertie.errors import SpecError, TokenizerError
from bertie.models.recipe import Recipe
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.instances import Corruption, Instances, fixed_instances, sample_shape, vocabulary_of
from bertie.train.pretraining.evaluation import Evaluation, prediction_of, target_frequencies, token_frequencies
from bertie.train.pretraining.held_out import hold_out
from bertie.train.pretraining.options import PretrainOptions, differences

AnyCorpus = Corpus | FrozenCorpus | ParallelCorpus


@dataclass(frozen=True)
class RunData:
    data_schedule: DataSchedule
    instances: Instances
    evaluation: Evaluation | None
    notes: tuple[str, ...] = ()  # which parts of the corpus are never seen

    @property
    def card(self) -> Mapping[str, Any]:
        return {}

    @property
    def start(self) -> Cursor:
        return self.data_schedule.enter(None, 0.0)

    @property
    def rows_continue(self) -> bool:
        return self.instances.rows_continue

    def take_counts(self) -> Mapping[str, int]:
        return {}

    def describe_counts(self, counts: Mapping[str, int]) -> Sequence[str]:
        return ()


def prepare(
    corpus: AnyCorpus,
    recipe: Recipe,
    tokenizer: Tokenizer,
    options: PretrainOptions,
    *,
    rank: int = 0,
    num_ranks: int = 1,
) -> RunData:
    """Prepares the data of a run. The first step's batches are built, so that what cannot work is refused now."""
    if tokenizer.size > recipe.vocab_size:
        what = f"the corpus has {tokenizer.size:,} ids, the model only {recipe.vocab_size:,} rows"
        raise TokenizerError(what, hint="build the corpus with the model's own tokenizer")
    for phase in options.lengths.phases:
        sample_shape(recipe, phase.length)
    notes: list[str] = []
    if isinstance(corpus, FrozenCorpus):
        check_frozen(corpus, recipe, tokenizer, options)
        samples: Sequence[Samples] = [corpus.samples]
        corruption, evaluation = None, _frozen_evaluation(corpus, recipe, tokenizer, options)
    else:
        for side in sides_of(corpus):
            check_tokenizer(side.manifest.tokenizer, tokenizer, str(side.folder))
        samples, corruption, evaluation, notes = _build(corpus, recipe, tokenizer, options)
    stages = stages_of(options.lengths, options.batch_tokens, options.ramp)
    schedule = DataSchedule(stages, samples, options.seed)
    instances = Instances(
        schedule,
        corruption,
        options.micro_tokens,
        options.seed,
        num_masks=options.static_masks,
        rank=rank,
        num_ranks=num_ranks,
    )
    fewest = min(plan_rows(schedule, stage) for stage in stages)
    if fewest < num_ranks:
        what = f"a step may have only {fewest} rows, fewer than there are processes ({num_ranks})"
        raise SpecError(what, hint="give a larger `batch_tokens`, or start fewer processes")
    data = RunData(schedule, instances, evaluation, tuple(dict.fromkeys(notes)))
    check_tables(recipe, instances(data.start))
    return data


def check_tables(recipe: Recipe, micros: Sequence[Batch]) -> None:
    """Checks that every number of a field has its row in the field's table."""
    for table in recipe.encoder.embeddings.tables:
        numbers = [micro.tensor(table.field) for micro in micros if table.field in micro]
        most = max((int(number.max()) for number in numbers if len(number)), default=0)
        if most + table.offset >= table.size:
            rows = table.size - table.offset
            what = f"the samples have {table.field} up to {most}, the model has {rows} row(s) for them"
            raise SpecError(what, hint="the recipe was not made for such samples: leave out `sentences`")


def plan_rows(schedule: DataSchedule, stage: Stage) -> int:
    """Returns the fewest rows that a step of the stage may have."""
    plan = schedule.plans[stage.phase]
    return plan.window_of(stage.tokens) // plan.samples.longest


def sides_of(corpus: Corpus | ParallelCorpus) -> list[Corpus]:
    return [corpus.corpus, corpus.translations] if isinstance(corpus, ParallelCorpus) else [corpus]


def _build(
    corpus: Corpus | ParallelCorpus, recipe: Recipe, tokenizer: Tokenizer, options: PretrainOptions
) -> tuple[list[Samples], Corruption, Evaluation | None, list[str]]:
    """Builds the samples of each length, what objectives do to them, what to evaluate on, and notes on unused text."""
    frame = Frame.of(tokenizer)
    learned: list[Documents] = [*sides_of(corpus)]
    held: list[Documents] = []
    if options.held_out:
        # Which documents these are depends on their number alone: a text goes with its translation.
        parts = [hold_out(side, options.held_out) for side in learned]
        learned, held = [learned for learned, _ in parts], [held for _, held in parts]
    frequencies = np.sum([token_frequencies(side, tokenizer.size) for side in learned], axis=0)
    corruption = Corruption(recipe.objectives, replace(vocabulary_of(tokenizer), frequencies=frequencies))
    evaluation = None
    notes: list[str] = []
    if held:
        measured = build_samples(sample_shape(recipe, options.length), held, frame)
        rows = fixed_instances(measured, corruption, options.eval_rows, options.micro_tokens)
        evaluation = Evaluation(rows, frequencies, prediction_of(recipe))
        notes += [f"held out: {loss}" for loss in losses_of(measured)]
    shapes = [sample_shape(recipe, phase.length) for phase in options.lengths.phases]
    samples = [build_samples(shape, learned, frame) for shape in shapes]
    return samples, corruption, evaluation, [loss for one in samples for loss in losses_of(one)] + notes


def losses_of(samples: Samples) -> list[str]:
    """Returns what parallel samples leave out; of a document that is too long, other shapes make several rows."""
    return samples.losses if isinstance(samples, ParallelSamples) else []


def _frozen_evaluation(
    corpus: FrozenCorpus, recipe: Recipe, tokenizer: Tokenizer, options: PretrainOptions
) -> Evaluation | None:
    """Evaluates on what was held out when the corpus was frozen."""
    if corpus.held_out is None or not options.held_out:
        return None
    rows = fixed_instances(corpus.held_out, None, options.eval_rows, options.micro_tokens)
    prediction = prediction_of(recipe)
    return Evaluation(rows, target_frequencies(corpus.samples, tokenizer.size, prediction), prediction)


def check_frozen(corpus: FrozenCorpus, recipe: Recipe, tokenizer: Tokenizer, options: PretrainOptions) -> None:
    """Checks that the run suits samples that are of one length and masked for certain objectives."""
    where = str(corpus.folder)
    if options.static_masks or options.curriculum:
        hint = f"leave out `{'static_masks' if options.static_masks else 'curriculum'}`"
        raise SpecError("the samples are frozen: their masks and lengths cannot be changed", where=where, hint=hint)
    now = objectives_frozen(recipe)
    frozen: dict[str, Any] = {one.get("name", one["kind"]): one for one in corpus.about["objectives"]}
    if frozen.keys() != now.keys():  # then their fields need not be compared
        frozen, now = ({"objectives": ", ".join(names)} for names in (frozen, now))
    found = differences(
        {**frozen, "length": corpus.about["samples"]["length"], "tokenizer": corpus.about["tokenizer"]},
        {**now, "length": options.length, "tokenizer": tokenizer.digest},
        sides=("frozen", "here"),
    )
    if found:
        hint = "freeze the corpus again for this run, or give the run what was frozen"
        raise SpecError(f"the frozen samples do not fit the run: {'; '.join(found)}", where=where, hint=hint)


def objectives_frozen(recipe: Recipe) -> dict[str, Any]:
    """Returns objectives by name, as stored with frozen samples: what decides samples, nothing of the model."""
    return {one.name: json.loads(one.model_dump_json(exclude=set(one.head_fields))) for one in recipe.objectives}
