"""Trains a model in a run folder, or continues a run that was stopped.

Order, masks and dropout come from the seed and from what is saved, so a run that was stopped or killed ends in the same
bits as one that was not, on the same machine with the same number of threads; but not where its budget is time.
"""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from bertie import devices
from bertie.devices import CPU, device_of
from bertie.errors import FolderError, InputError
from bertie.models.folder.adapter_folder import ADAPTER, write_adapter
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.nn.low_rank import is_adapted, merged
from bertie.nn.products import choice
from bertie.objectives.loss_report import LossReport
from bertie.reporting.busy import BusyMachine
from bertie.reporting.events import OnEvent, ignore
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.budget import Done
from bertie.train.distribution import ALONE, Ranks, gather_memory
from bertie.train.folder.checkpoint import Checkpoints
from bertie.train.folder.log import Log
from bertie.train.folder.run_folder import (
    CHECKPOINTS,
    LAST_GOOD,
    MODEL,
    SUMMARY,
    begin,
    digest_of,
    is_finished,
    locked,
    read_object,
    write_summary,
)
from bertie.train.folder.run_state import RunState
from bertie.train.learning.learning_rates import Learning
from bertie.train.loop import NotFiniteError, StepResult, count_tokens, take_step
from bertie.train.pretraining.corpus_data import AnyCorpus, prepare
from bertie.train.pretraining.options import PretrainOptions
from bertie.train.protocols import Measure, RunOptions, RunSource
from bertie.train.run_events import Record, run_event
from bertie.train.stopping import Stopped, StopSignals


def pretrain(
    folder: str | Path,
    model: Model,
    corpus: AnyCorpus,
    tokenizer: Tokenizer,
    options: PretrainOptions,
    *,
    base: str | None = None,
    teacher: str | None = None,
    config: str | None = None,
    peak: Callable[[int], float] | None = None,
    on_event: OnEvent = ignore,
    ranks: Ranks = ALONE,
    device: torch.device = CPU,
) -> Record:
    """Pre-trains a model on a corpus, or continues; returns the summary.

    `base` is the digest of the model that `model` continues, `teacher` that of the one that it learns from. `config` is
    the text of a file to keep beside the options. `peak` gives the tokens per second at the machine's peak, for rows of
    a length. `on_event` gets every record of the log as an event. Of many `ranks` only the first writes and reports.
    Everything that can be refused is refused before the folder is made. Raises Stopped after Ctrl-C or SIGTERM, when
    the state is saved.
    """
    data = prepare(corpus, model.recipe, tokenizer, options, rank=ranks.rank, num_ranks=ranks.size)
    resolved = {
        "options": options.model_dump(mode="json"),
        "recipe": model.recipe.model_dump(mode="json"),
        "from": base,
        "corpus": corpus.digest,
        "tokenizer": tokenizer.digest,
        **({} if teacher is None else {"teacher": teacher}),
    }
    paces = None if peak is None else [peak(phase.length) for phase in options.lengths.phases]
    return run_training(
        Path(folder),
        model,
        data,
        tokenizer,
        options,
        resolved,
        config=config,
        paces=paces,
        on_event=on_event,
        ranks=ranks,
        device=device,
    )


def run_training(
    target: Path,
    model: Model,
    data: RunSource,
    tokenizer: Tokenizer,
    options: RunOptions,
    resolved: Record,
    *,
    config: str | None = None,
    paces: Sequence[float] | None = None,
    on_event: OnEvent = ignore,
    ranks: Ranks = ALONE,
    device: torch.device = CPU,
) -> Record:
    """Runs any training, on a device. `resolved` is everything that decides the bits but for threads, processes and
    device: a folder that was started with anything else is refused. `paces` are tokens per second at the machine's
    peak, one for each phase of the data schedule."""
    model.recipe.check_saves()  # now, not after hours of training
    model.to(device)
    with ExitStack() as stack:
        log = None
        if ranks.leads:
            stack.enter_context(locked(target))
            begin(target, resolved, config)
            log = stack.enter_context(Log(target))
        if ranks.size > 1:
            ranks.wait()
        if not is_finished(target):
            signals = stack.enter_context(StopSignals())
            run = _Run(target, model, data, options, digest_of(resolved), log, signals, paces, on_event, ranks)
            try:
                run.run()
            except NotFiniteError as error:
                raise NotFiniteError(error.step, error.figure, run.keep_last_good(tokenizer, error.step)) from None
            run.finish(tokenizer)
            if stopping := ranks.combine(signals.received or 0, "max"):  # too late for the run, not for what follows
                raise Stopped(stopping, run.state.steps)
        if ranks.size > 1:
            ranks.wait()
        return read_object(target / SUMMARY)


class _Run:
    def __init__(
        self,
        folder: Path,
        model: Model,
        data: RunSource,
        options: RunOptions,
        digest: str,  # of everything that decides the run
        log: Log | None,  # None: another rank writes
        signals: StopSignals,
        paces: Sequence[float] | None,
        on_event: OnEvent,
        ranks: Ranks,
    ):
        self.folder, self.model, self.data, self.options, self.digest = folder, model, data, options, digest
        self.log, self.signals, self.paces, self.on_event, self.ranks = log, signals, paces, on_event, ranks
        self.environment = {
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "processes": ranks.size,
            "device": devices.describe(device_of(model)),
            **({"engine": choice.describe(options.precision)} if device_of(model) == CPU else {}),
        }
        self.learning = Learning() if options.learning is None else options.learning.build(model)
        self.optimizer = options.optimizer.build(model, self.learning.factor)
        self.checkpoints = Checkpoints(folder / CHECKPOINTS, options.keep)
        self.state = RunState(place=data.start)
        self.reports, self.num_tokens, self.seconds = LossReport(), 0, 0.0  # of steps since the last record
        self.step_seconds = 0.0  # of the last step
        self.busy = BusyMachine(torch.get_num_threads() * ranks.size)
        self.ended = False

    def run(self) -> None:
        self._restore()
        self.ended = self._progress() >= 1 or self.state.waited >= (self.options.patience or math.inf)
        while not self.ended:
            try:
                self._step()
                self._after_step()
            except InputError:  # a row that cannot be used: once it is fixed or skipped, the run continues from here
                self._save()
                raise

    def _restore(self) -> None:
        restored = self.checkpoints.restore(self.model, self.optimizer)
        here = self.environment
        if restored is None:
            self._record("start", here)
            for note in (*self.data.notes, *filter(None, [self.learning.describe(self.model)])):
                self._record("note", {"what": note})
            return
        if restored.facts.get("run", self.digest) != self.digest:
            hint = "remove it: the run continues from the one before it, or starts over"
            where = str(self.checkpoints.path(restored.step))
            raise FolderError("the checkpoint belongs to another run", where=where, hint=hint)
        self.state = RunState.restored(restored.facts)
        if restored.memory is not None:
            self.state.memory = restored.memory.rows(range(self.ranks.rank, restored.memory.num_rows, self.ranks.size))
        for checkpoint in restored.damaged:
            self._record("damaged", {"checkpoint": checkpoint})
        self.checkpoints.best = self.state.best["step"] if self.state.best else None
        before = {"device": "cpu", **restored.facts}  # which older runs do not name
        why = [f"{name} was {before.get(name)}" for name in here if before.get(name) != here[name]]
        if not self.options.budget.exact:
            why.append("its budget is time")
        self._record("resume", {**here, "exact": not why, "why": why})

    def _progress(self) -> float:
        """The share of the budget that is used."""
        return self.ranks.combine(self.options.budget.progress(self.state.done), "first")

    def _step(self) -> None:
        options, state = self.options, self.state
        before = state.done
        # An evaluation may have used up the time: then this step is the last.
        begun = min(self._progress(), 1.0)
        place = self.data.data_schedule.enter(state.place, begun)
        if place.phase != state.place.phase:  # other rows begin
            state.memory = None
        micros = self.data.instances(place)
        num_tokens = self.ranks.combine(count_tokens(micros), "sum")
        expected = Done(before.steps + 1, before.tokens + num_tokens, state.done.seconds + self.step_seconds)
        factor = options.schedule.factor(begun, min(options.budget.progress(expected), 1.0))
        self.learning.begin(state.steps)
        result = take_step(
            self.model,
            micros,
            self.optimizer,
            self.ranks.combine(factor, "first"),
            step=state.steps,
            seed=options.seed,
            clip=options.clip,
            precision=options.precision,
            ranks=self.ranks,
            adversary=options.adversary,
            memory=state.memory,
            keep_memory=self.data.rows_continue,
        )
        state.memory = result.memory
        state.steps += 1
        state.tokens += result.num_tokens
        state.place = self.data.data_schedule.after(place)
        state.counts.update({name: self.ranks.combine(count, "sum") for name, count in self.data.take_counts().items()})
        self.step_seconds = state.done.seconds - before.seconds
        self.reports, self.num_tokens = self.reports + result.report, self.num_tokens + result.num_tokens
        self.seconds += self.step_seconds
        progress = self._progress()
        self.ended = progress >= 1
        if state.steps % options.log_every == 0 or self.ended:
            self._record_steps(result, min(progress, 1.0), place.phase)
        if warning := self.busy.add_step(self.step_seconds, result.num_tokens):
            self._record("warning", {"what": warning})

    def _record_steps(self, result: StepResult, progress: float, phase: int) -> None:
        speed = self.num_tokens / max(self.seconds, 1e-9)
        record = {
            "loss": float(self.reports.loss()),
            **self.reports.means(),
            "lr": result.rate,
            "norm": result.norm,
            "tokens": self.state.tokens,
            "seconds": round(self.state.done.seconds, 3),
            "progress": progress,
            "tokens_per_second": speed,
        }
        if self.paces is not None:
            # A measured peak can be too low, as other programs ran meanwhile: no step is faster than the true one.
            self.paces = [pace * max(1.0, speed / self.paces[phase]) for pace in self.paces]
            record["share_of_peak"] = min(1.0, speed / self.paces[phase])
        self._record("step", record)
        self.reports, self.num_tokens, self.seconds = LossReport(), 0, 0.0

    def _after_step(self) -> None:
        """What is due after a step: evaluating, saving, stopping."""
        options, state = self.options, self.state
        improved = False
        if self.data.evaluation is not None and (state.steps % options.eval_every == 0 or self.ended):
            improved = self._evaluate(self.data.evaluation)
            if not self.ended and state.waited >= (options.patience or math.inf):
                what = f"no improvement in {state.waited} evaluations: the run ends after step {state.steps:,}"
                self._record("note", {"what": what})
                self.ended = True
        stopping = self.ranks.combine(self.signals.received or 0, "max")
        if state.steps % options.save_every == 0 or self.ended or improved or stopping:
            self._save()
        if stopping and not self.ended:
            self._record("stopped", {"signal": stopping})
            raise Stopped(stopping, state.steps)

    def _evaluate(self, evaluation: Measure) -> bool:
        """Returns whether it is the best so far."""
        state = self.state
        figures = state.evaluation = evaluation(self.model)
        spent = {"tokens": state.tokens, "seconds": round(state.done.seconds, 3)}
        self._record("evaluation", {**spent, **figures})
        warning = evaluation.warning(figures)
        if warning is not None and self._progress() > self.options.schedule.warmup:
            self._record("warning", {"what": warning})
        rank = evaluation.rank(figures)
        known = (state.best["rank"], state.best["loss"]) if state.best else (math.inf, math.inf)
        state.waited = 0 if rank < known[0] else state.waited + 1
        if not (rank, figures["loss"]) < known:  # also where it is no number
            return False
        state.best = {"step": state.steps, "loss": figures["loss"], "rank": rank}
        self.checkpoints.best = state.steps
        return True

    def _save(self) -> None:
        memory = self.state.memory
        if memory is not None and self.ranks.size > 1:
            memory = gather_memory(memory, self.ranks)
        if not self.ranks.leads:
            return
        facts = {**self.state.facts(), **self.environment, "run": self.digest}
        path = self.checkpoints.save(self.state.steps, self.model, self.optimizer, facts, memory)
        self._record("saved", {"checkpoint": path.name})

    def finish(self, tokenizer: Tokenizer) -> None:
        """Writes the model folder, then the summary."""
        if not self.ranks.leads:
            return
        state, evaluation = self.state, self.data.evaluation
        if evaluation is not None and evaluation.keeps_best:  # with the thresholds that suit it
            if self.checkpoints.best is not None:
                self.checkpoints.load_weights(self.checkpoints.best, self.model)
            self.model.recipe = evaluation.tuned(self.model)
            state.evaluation = evaluation(self.model)
        notes = [*self.data.notes, *self.data.describe_counts(state.counts), *self.write_model(tokenizer, MODEL)]
        learned, total = self.learning.count(self.model, max(0, state.steps - 1))
        facts = {"seconds": state.done.seconds, "weights": {"learned": learned, "all": total}, "notes": notes}
        write_summary(self.folder, {**state.figures(), **facts})
        self._record("finished", {})

    def keep_last_good(self, tokenizer: Tokenizer, failed: int) -> Path | None:
        """Writes the newest saved state from which a step was taken as a model folder: a step that failed is the fault
        of the state it started from."""
        restored = self.checkpoints.restore(self.model, self.optimizer, before=failed)
        if restored is None:
            return None
        self.state = RunState.restored(restored.facts)
        self.write_model(tokenizer, LAST_GOOD)
        return self.folder / LAST_GOOD

    def write_model(self, tokenizer: Tokenizer, name: str) -> list[str]:
        """Returns what other programs cannot read of it. Adapters are merged, and also kept apart."""
        if not self.ranks.leads:
            return []
        card = {**self.data.card, "training": self.state.figures()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the caller reports it
            notes = Pretrained(merged(self.model), tokenizer, card=card).save(self.folder / name)
        if is_adapted(self.model):
            notes += write_adapter(self.folder / name / ADAPTER, self.model, card)
            tokenizer.save(self.folder / name / ADAPTER)  # a table of words may have been added to the base's
        return notes

    def _record(self, event: str, data: Record) -> None:
        if self.log is not None:
            record = {"event": event, "step": self.state.steps, **data}
            self.log.write({**record, "time": round(time.time(), 3)})
            self.on_event(run_event(record))
