"""The data of a run: a corpus, plain or frozen, and a model enter, instances to learn from and to measure on leave.

Whatever disagrees is refused here, before anything is computed or written.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertie.batch import Batch
from bertie.data.corpus import Corpus, check_tokenizer
from bertie.data.course import Course, Place, Stage, stages_of
from bertie.data.frozen_corpus import FrozenCorpus
from bertie.data.parallel_corpus import ParallelCorpus
from bertie.data.samples.building import build_samples
from bertie.data.samples.frame import Frame
from bertie.data.samples.parallel import ParallelSamples
from bertie.data.samples.source import Documents, Samples
from bertie.errors import SpecError, TokenizerError
from bertie.models.recipe import Recipe
from bertie.text.tokenizer import Tokenizer
from bertie.train.evaluation import Evaluation, target_frequencies, token_frequencies
from bertie.train.held_out import hold_out
from bertie.train.instances import Corruption, Instances, fixed_instances, sample_shape, vocabulary_of
from bertie.train.options import PretrainOptions, differences

AnyCorpus = Corpus | FrozenCorpus | ParallelCorpus


@dataclass(frozen=True)
class RunData:
    course: Course
    instances: Instances
    evaluation: Evaluation | None
    notes: tuple[str, ...] = ()  # what of the corpus is never seen

    @property
    def card(self) -> Mapping[str, Any]:
        return {}

    @property
    def beginning(self) -> Place:
        return self.course.enter(None, 0.0)

    def take_counts(self) -> Mapping[str, int]:
        return {}

    def told(self, counts: Mapping[str, int]) -> Sequence[str]:
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
    """The data of a run; the first step's is made, so that what cannot work is refused now."""
    if tokenizer.size > recipe.vocab_size:
        what = f"the corpus has {tokenizer.size:,} ids, the model only {recipe.vocab_size:,} rows"
        raise TokenizerError(what, hint="they belong to different vocabularies")
    for phase in options.lengths.phases:
        sample_shape(recipe, phase.length)
    notes: list[str] = []
    if isinstance(corpus, FrozenCorpus):
        check_frozen(corpus, recipe, tokenizer, options)
        samples: Sequence[Samples] = [corpus.samples]
        corruption, evaluation = None, _frozen_evaluation(corpus, tokenizer, options)
    else:
        for side in sides_of(corpus):
            check_tokenizer(side.manifest.tokenizer, tokenizer, str(side.folder))
        corruption = Corruption(recipe.objectives, vocabulary_of(tokenizer))
        samples, evaluation, notes = _build(corpus, recipe, tokenizer, options, corruption)
    stages = stages_of(options.lengths, options.batch_tokens, options.ramp)
    course = Course(stages, samples, options.seed)
    instances = Instances(
        course,
        corruption,
        options.micro_tokens,
        options.seed,
        num_masks=options.static_masks,
        rank=rank,
        num_ranks=num_ranks,
    )
    fewest = min(plan_rows(course, stage) for stage in stages)
    if fewest < num_ranks:
        what = f"a step may have only {fewest} rows, fewer than there are processes ({num_ranks})"
        raise SpecError(what, hint="give a larger --batch-tokens, or start fewer processes")
    data = RunData(course, instances, evaluation, tuple(dict.fromkeys(notes)))
    check_tables(recipe, instances(data.beginning))
    return data


def check_tables(recipe: Recipe, micros: Sequence[Batch]) -> None:
    """Every number of a field has its row in the field's table."""
    for table in recipe.encoder.embeddings.tables:
        numbers = [micro.tensor(table.field) for micro in micros if table.field in micro]
        most = max((int(number.max()) for number in numbers if len(number)), default=0)
        if most + table.offset >= table.size:
            rows = table.size - table.offset
            what = f"the samples have {table.field} up to {most}, the model has {rows} row(s) for them"
            raise SpecError(what, hint="the recipe was not made for such samples: leave out --sentences")


def plan_rows(course: Course, stage: Stage) -> int:
    """The fewest rows of a stage's steps."""
    plan = course.plans[stage.phase]
    return plan.window_of(stage.tokens) // plan.samples.longest


def sides_of(corpus: Corpus | ParallelCorpus) -> list[Corpus]:
    return [corpus.corpus, corpus.translations] if isinstance(corpus, ParallelCorpus) else [corpus]


def _build(
    corpus: Corpus | ParallelCorpus,
    recipe: Recipe,
    tokenizer: Tokenizer,
    options: PretrainOptions,
    corruption: Corruption,
) -> tuple[list[Samples], Evaluation | None, list[str]]:
    """What to learn from, for each length; what to measure on; and what of the text is in neither."""
    frame = Frame.of(tokenizer)
    learned: list[Documents] = [*sides_of(corpus)]
    evaluation = None
    notes: list[str] = []
    if options.held_out:
        # Which documents these are depends on their number alone: a text goes with its translation.
        parts = [hold_out(side, options.held_out) for side in learned]
        learned = [learned for learned, _ in parts]
        measured = build_samples(sample_shape(recipe, options.length), [held for _, held in parts], frame)
        rows = fixed_instances(measured, corruption, options.eval_rows, options.micro_tokens)
        evaluation = Evaluation(rows, np.sum([token_frequencies(side, tokenizer.size) for side in learned], axis=0))
        notes += [f"held out: {loss}" for loss in losses_of(measured)]
    shapes = [sample_shape(recipe, phase.length) for phase in options.lengths.phases]
    samples = [build_samples(shape, learned, frame) for shape in shapes]
    return samples, evaluation, [loss for one in samples for loss in losses_of(one)] + notes


def losses_of(samples: Samples) -> list[str]:
    """Of a document that is too long, other shapes make several rows."""
    return samples.losses if isinstance(samples, ParallelSamples) else []


def _frozen_evaluation(corpus: FrozenCorpus, tokenizer: Tokenizer, options: PretrainOptions) -> Evaluation | None:
    """On what was held out when the corpus was frozen."""
    if corpus.held_out is None or not options.held_out:
        return None
    rows = fixed_instances(corpus.held_out, None, options.eval_rows, options.micro_tokens)
    return Evaluation(rows, target_frequencies(corpus.samples, tokenizer.size))


def check_frozen(corpus: FrozenCorpus, recipe: Recipe, tokenizer: Tokenizer, options: PretrainOptions) -> None:
    """Frozen samples are of one length, and only for the objectives that masked them."""
    where = str(corpus.folder)
    if options.static_masks or options.curriculum:
        hint = f"leave out {'--static-masks' if options.static_masks else '--curriculum'}"
        raise SpecError("the samples are frozen, nothing about them can be chosen", where=where, hint=hint)
    now = objectives_frozen(recipe)
    frozen: dict[str, Any] = {one["kind"]: one for one in corpus.about["objectives"]}
    if frozen.keys() != now.keys():  # then no more need be said of them
        frozen, now = ({"objectives": ", ".join(kinds)} for kinds in (frozen, now))
    told = differences(
        {**frozen, "length": corpus.about["samples"]["length"], "tokenizer": corpus.about["tokenizer"]},
        {**now, "length": options.length, "tokenizer": tokenizer.digest},
        told=("frozen", "here"),
    )
    if told:
        hint = "freeze the corpus again for this run, or give the run what was frozen"
        raise SpecError(f"the frozen samples do not fit the run: {'; '.join(told)}", where=where, hint=hint)


def objectives_frozen(recipe: Recipe) -> dict[str, Any]:
    """By kind, as they are written down where samples are frozen: what decides samples, and nothing of the model."""
    return {one.kind: json.loads(one.model_dump_json(exclude=set(one.of_the_model))) for one in recipe.objectives}
