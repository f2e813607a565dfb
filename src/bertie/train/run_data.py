"""The data of a run: a corpus, plain or frozen, and a model enter, instances to learn from and to measure on leave.

Whatever disagrees is refused here, before anything is computed or written.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertie.data.corpus import Corpus, check_tokenizer
from bertie.data.course import Course, Place, Stage, stages_of
from bertie.data.frozen_corpus import FrozenCorpus
from bertie.data.samples.building import build_samples
from bertie.data.samples.frame import Frame
from bertie.data.samples.source import Documents, Samples
from bertie.errors import SpecError, TokenizerError
from bertie.models.recipe import Recipe
from bertie.text.tokenizer import Tokenizer
from bertie.train.evaluation import Evaluation, target_frequencies, token_frequencies
from bertie.train.held_out import hold_out
from bertie.train.instances import Corruption, Instances, fixed_instances, sample_shape, vocabulary_of
from bertie.train.options import PretrainOptions, differences

AnyCorpus = Corpus | FrozenCorpus


@dataclass(frozen=True)
class RunData:
    course: Course
    instances: Instances
    evaluation: Evaluation | None

    @property
    def beginning(self) -> Place:
        return self.course.enter(None, 0.0)


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
    if isinstance(corpus, FrozenCorpus):
        check_frozen(corpus, recipe, tokenizer, options)
        samples: Sequence[Samples] = [corpus.samples]
        corruption, evaluation = None, _frozen_evaluation(corpus, tokenizer, options)
    else:
        check_tokenizer(corpus.manifest.tokenizer, tokenizer, str(corpus.folder))
        corruption = Corruption(recipe.objectives, vocabulary_of(tokenizer))
        samples, evaluation = _build(corpus, recipe, tokenizer, options, corruption)
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
    data = RunData(course, instances, evaluation)
    instances(data.beginning)
    return data


def plan_rows(course: Course, stage: Stage) -> int:
    """The fewest rows of a stage's steps."""
    plan = course.plans[stage.phase]
    return plan.window_of(stage.tokens) // plan.samples.longest


def _build(
    corpus: Corpus, recipe: Recipe, tokenizer: Tokenizer, options: PretrainOptions, corruption: Corruption
) -> tuple[list[Samples], Evaluation | None]:
    frame = Frame.of(tokenizer)
    learned: Documents = corpus
    evaluation = None
    if options.held_out:
        learned, held = hold_out(corpus, options.held_out)
        measured = build_samples(sample_shape(recipe, options.length), held, frame)
        rows = fixed_instances(measured, corruption, options.eval_rows, options.micro_tokens)
        evaluation = Evaluation(rows, token_frequencies(learned, tokenizer.size))
    shapes = [sample_shape(recipe, phase.length) for phase in options.lengths.phases]
    return [build_samples(shape, learned, frame) for shape in shapes], evaluation


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
    """By kind, as they are written down where samples are frozen."""
    return {objective.kind: json.loads(objective.model_dump_json()) for objective in recipe.objectives}
