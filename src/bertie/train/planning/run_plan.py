"""Estimates the steps, time, memory and disk that a run will take, before anything starts.

A short trial measures the parts, and the budget decides how often each of them comes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from bertie.data.data_schedule import stages_of
from bertie.devices import CPU
from bertie.inspection.costs import TrainingMemory, training_flops_per_token
from bertie.models.recipe import SIZES, Recipe
from bertie.models.recipes import RECIPES
from bertie.peak import peak_flops, raise_peak
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import AnyBudget, Steps, Time, Tokens
from bertie.train.planning.trial import StepCost, Trial, try_apart
from bertie.train.pretraining.corpus_data import AnyCorpus
from bertie.train.pretraining.options import PretrainOptions

SECONDS = 10.0  # of steps in a trial
# Steps of ever other sizes leave gaps in the heap, which a trial is too short to show. This share of what a micro-batch
# keeps brings the plans of benchmarks/plan.py near to what the runs then took.
GAPS = 0.8


@dataclass(frozen=True)
class RunPlan:
    """Seconds, bytes and FLOPs of a whole run."""

    num_parameters: int
    num_steps: int
    num_tokens: int
    flops: float  # that the model needs
    seconds: dict[str, float]  # by what they are spent on
    memory: int  # the peak, Python and its libraries included: as measured, and what it will grow by
    parts: TrainingMemory  # what of it is the model's, as counted
    disk: int  # the most at once: checkpoints, one that is being written, the model folder
    precision: str = "float32"  # of its matrix products
    device: str = "cpu"
    device_memory: int | None = None  # all that a GPU has

    @property
    def flops_per_token(self) -> float:
        return self.flops / self.num_tokens

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())

    @property
    def tokens_per_second(self) -> float:
        """Of steps alone."""
        return self.num_tokens / self.seconds["steps"]

    @property
    def share_of_peak(self) -> float | None:
        """The FLOPs of the model against those of the fastest matrix product in the same time and precision; None for a
        GPU, whose products are not measured."""
        peak = peak_flops(self.precision) if self.device == "cpu" else None
        return None if peak is None else min(1.0, self.flops / self.seconds["steps"] / peak)


def plan_run(
    recipe: Recipe,
    corpus: AnyCorpus,
    tokenizer: Tokenizer,
    options: PretrainOptions,
    seconds: float = SECONDS,
    teacher: str | None = None,
    prepare_process: Callable[[], object] | None = None,
    device: torch.device = CPU,
) -> RunPlan:
    """Tries the run in another process, and takes steps there for so many seconds. `teacher` is a model folder;
    `prepare_process` is called in that process first, e.g. to load plugins."""
    trial = try_apart(recipe, corpus, tokenizer, options, seconds, teacher, prepare_process, device)
    plan = project(trial, options, device.type)
    # The last measurement may be of a busier hour; and no peak is below what a run reached.
    if device == CPU and peak_flops(plan.precision, refresh=True) is not None:
        raise_peak(plan.flops / plan.seconds["steps"], plan.precision)
    return plan


def smaller_sizes(recipe: Recipe, length: int) -> Mapping[str, Recipe]:
    """The same recipe in every size that needs fewer FLOPs, the largest of them first; none where its own size is none
    of these."""
    if recipe.name not in RECIPES:
        return {}
    usual = {name: RECIPES[recipe.name](size, recipe.vocab_size) for name, size in SIZES.items()}
    own_size = next((one for one in usual.values() if one.encoder == recipe.encoder), None)
    if own_size is None:
        return {}
    sizes = {name: _with_objectives(one, recipe, own_size) for name, one in usual.items()}
    costs = {name: training_flops_per_token(one, length) for name, one in sizes.items()}
    own = training_flops_per_token(recipe, length)
    return {name: sizes[name] for name in sorted(costs, key=lambda name: -costs[name]) if costs[name] < own * 0.99}


def _with_objectives(smaller: Recipe, recipe: Recipe, usual: Recipe) -> Recipe:
    """With the objectives of `recipe`; but what of them is as `usual` in its size is as in the smaller one's."""
    sized, own = ({one.name: one for one in each.objectives} for each in (usual, smaller))
    adapted = []
    for one in recipe.objectives:
        if one.name in sized:
            changed = {name: value for name, value in dict(one).items() if value != getattr(sized[one.name], name)}
            one = own[one.name].replace(**changed)
        adapted.append(one)
    return smaller.replace(objectives=tuple(adapted))


def project(trial: Trial, options: PretrainOptions, device: str = "cpu") -> RunPlan:
    """From what was tried to the whole run."""
    saving_share = _saves_of_a_step(options)
    extra = trial.evaluation / options.eval_every + trial.saving * saving_share
    counted = [(cost, _steps_of(options.budget, share, cost, extra)) for share, cost in _stages(trial, options)]
    num_steps = max(1, round(sum(count for _, count in counted)))
    num_evaluations = math.ceil(num_steps / options.eval_every) if trial.evaluation else 0
    num_saves = math.ceil(num_steps * saving_share)
    kept = options.keep + (1 if num_evaluations else 0)
    return RunPlan(
        num_parameters=trial.num_parameters,
        num_steps=num_steps,
        num_tokens=round(sum(cost.tokens * count for cost, count in counted)),
        flops=sum(cost.flops * count for cost, count in counted),
        seconds={
            "preparing": trial.preparing,
            "steps": sum(cost.seconds * count for cost, count in counted),
            "evaluation": num_evaluations * trial.evaluation,
            "saving": num_saves * trial.saving + trial.finishing,
        },
        memory=trial.peak_memory + (0 if trial.device_memory else round(GAPS * trial.memory.activations)),
        parts=trial.memory,
        disk=min(kept + 1, num_saves) * trial.checkpoint_size + trial.model_size,
        precision=options.precision,
        device=device,
        device_memory=trial.device_memory,
    )


def _stages(trial: Trial, options: PretrainOptions) -> list[tuple[float, StepCost]]:
    """Shares of the run, with what a step costs there: smaller steps of a ramp cost as much a token as whole ones."""
    stages = stages_of(options.lengths, options.batch_tokens, options.ramp)
    ends = [*(stage.begin for stage in stages[1:]), 1.0]
    found = []
    for stage, end in zip(stages, ends, strict=True):
        whole, scale = trial.phases[stage.phase], stage.tokens / options.batch_tokens
        cost = StepCost(whole.tokens * scale, whole.seconds * scale, whole.flops * scale)
        found.append((end - stage.begin, cost))
    return found


def _steps_of(budget: AnyBudget, share: float, cost: StepCost, extra: float) -> float:
    """How many steps of this cost fill a share of the budget. A clock runs on during the `extra` seconds of a step."""
    match budget:
        case Steps():
            return share * budget.steps
        case Tokens():
            return share * budget.tokens / cost.tokens
        case Time():
            return share * budget.seconds / (cost.seconds + extra)


def _saves_of_a_step(options: PretrainOptions) -> float:
    """Every `save_every` steps, and after every evaluation, as most of them are the best so far."""
    both = 1 / math.lcm(options.save_every, options.eval_every)
    evaluated = 1 / options.eval_every - both if options.held_out else 0.0
    return 1 / options.save_every + evaluated
