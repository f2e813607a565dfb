"""Measures what the steps, evaluations and checkpoints of a run take, in a short trial.

The trial is a process of its own, so that its memory is the run's alone, and takes the same steps as a run. It writes
to a temporary folder and to no other.
"""

import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from bertie.batch import Batch
from bertie.data.data_schedule import Cursor
from bertie.devices import CPU, memory_on
from bertie.errors import UserError
from bertie.inspection.costs import TrainingMemory, forward_flops, training_memory
from bertie.machine import peak_memory
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.models.teacher import give_teacher
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.folder.checkpoint import Checkpoints
from bertie.train.learning.optimizer import Optimizer
from bertie.train.loop import count_tokens, take_step
from bertie.train.pretraining.corpus_data import AnyCorpus, RunData, prepare
from bertie.train.pretraining.evaluation import Evaluation
from bertie.train.pretraining.options import PretrainOptions

LEAST_STEPS = 2  # to measure, after one that is not measured
MOST_BATCHES = 8  # of an evaluation: the others take as long


@dataclass(frozen=True)
class StepCost:
    """The mean of some steps with whole batches, in one phase of the run."""

    tokens: float
    seconds: float
    flops: float


@dataclass(frozen=True)
class Trial:
    """Times in seconds, sizes in bytes."""

    num_parameters: int
    phases: tuple[StepCost, ...]
    preparing: float
    evaluation: float  # of one; 0 where nothing is held out
    saving: float  # of one checkpoint
    finishing: float  # writing the model folder
    checkpoint_size: int
    model_size: int
    memory: TrainingMemory  # as counted
    peak_memory: int  # as measured: on the CPU Python and its libraries included, of a GPU what torch took
    device_memory: int | None = None  # all that a GPU has


def try_apart(
    recipe: Recipe,
    corpus: AnyCorpus,
    tokenizer: Tokenizer,
    options: PretrainOptions,
    seconds: float,
    teacher: str | None = None,
    prepare_process: Callable[[], object] | None = None,
    device: torch.device = CPU,
) -> Trial:
    """Tries a run in a new process, with as many threads as this one. `prepare_process` is called there first."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, _begin_process, (torch.get_num_threads(), prepare_process)) as pool:
        try:
            begun = time.time()
            return pool.submit(try_run, recipe, corpus, tokenizer, options, seconds, teacher, begun, device).result()
        except BrokenProcessPool:
            what = "the trial was ended from outside (was the memory full?)"
            raise UserError(what, hint="try fewer `micro_tokens` or a smaller `size`") from None


def _begin_process(num_threads: int, prepare_process: Callable[[], object] | None) -> None:
    torch.set_num_threads(num_threads)
    if prepare_process is not None:
        prepare_process()


def try_run(
    recipe: Recipe,
    corpus: AnyCorpus,
    tokenizer: Tokenizer,
    options: PretrainOptions,
    seconds: float,
    teacher: str | None = None,
    started: float | None = None,
    device: torch.device = CPU,
) -> Trial:
    """Steps for so many seconds, then an evaluation, a checkpoint and the model folder.

    `teacher` is the folder of the model that this one learns from. `started` is when the process began, if not now:
    what it imports is a part of preparing.
    """
    started = time.time() if started is None else started
    data = prepare(corpus, recipe, tokenizer, options)
    model = Model.new(recipe, options.seed)
    if teacher is not None:
        give_teacher(model, teacher, tokenizer, begin=False)
    model.to(device)
    optimizer = options.optimizer.build(model)
    preparing = time.time() - started
    share = seconds / len(data.data_schedule.plans)
    phases = [
        _try_phase(model, data, optimizer, options, phase, share) for phase in range(len(data.data_schedule.plans))
    ]
    evaluation = 0.0 if data.evaluation is None else _try_evaluation(model, data.evaluation)
    with tempfile.TemporaryDirectory(prefix="bertie-plan-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        checkpoint = Checkpoints(Path(folder)).save(0, model, optimizer, {})
        saved = time.perf_counter()
        Pretrained(model, tokenizer).save(Path(folder) / "model")
        finished = time.perf_counter()
        sizes = [_size_of(path) for path in (checkpoint, Path(folder) / "model")]
    peak, all_memory = memory_on(device) or (peak_memory(), None)
    return Trial(
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        phases=tuple(phases),
        preparing=preparing,
        evaluation=evaluation,
        saving=saved - begun,
        finishing=finished - saved,
        checkpoint_size=sizes[0],
        model_size=sizes[1],
        memory=_largest(model, data),
        peak_memory=peak,
        device_memory=all_memory,
    )


def _try_phase(
    model: Model,
    data: RunData,
    optimizer: Optimizer,
    options: PretrainOptions,
    phase: int,
    seconds: float,
) -> StepCost:
    flops = forward_flops(model)
    place = _whole_batch(data, phase)
    taken: list[StepCost] = []
    spent = 0.0
    while spent < seconds or len(taken) <= LEAST_STEPS:
        begun = time.perf_counter()
        micros = data.instances(place)
        take_step(
            model,
            micros,
            optimizer,
            1e-3,
            step=len(taken),
            seed=options.seed,
            clip=options.clip,
            precision=options.precision,
        )
        cost = time.perf_counter() - begun
        taken.append(StepCost(count_tokens(micros), cost, sum(map(flops.training_batch, micros))))
        place, spent = data.data_schedule.after(place), spent + cost
    measured = taken[1:]  # the first one fills caches and takes memory from the system
    tokens, counted = (sum(getattr(step, name) for step in measured) / len(measured) for name in ("tokens", "flops"))
    # One hiccup of the machine must not spoil the plan.
    return StepCost(tokens, median(step.seconds / step.tokens for step in measured) * tokens, counted)


def _try_evaluation(model: Model, evaluation: Evaluation) -> float:
    part = copy(evaluation)
    part.batches = evaluation.batches[:: -(-len(evaluation.batches) // MOST_BATCHES)]
    begun = time.perf_counter()
    part(model)
    return (time.perf_counter() - begun) * count_tokens(evaluation.batches) / count_tokens(part.batches)


def _whole_batch(data: RunData, phase: int) -> Cursor:
    """The beginning of a phase, with the tokens that a step has once a ramp is over."""
    tokens = max(stage.tokens for stage in data.data_schedule.stages if stage.phase == phase)
    return Cursor(phase, 0, tokens)


def _largest(model: Model, data: RunData) -> TrainingMemory:
    """Of the phase whose micro-batches take most."""
    firsts = [_longest(data.instances(_whole_batch(data, phase))) for phase in range(len(data.data_schedule.plans))]
    return max((training_memory(model, batch) for batch in firsts), key=lambda memory: memory.total)


def _longest(micros: Sequence[Batch]) -> Batch:
    return max(micros, key=lambda micro: micro.num_tokens)


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
