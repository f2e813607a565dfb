"""A run: a corpus, a model and options enter, a run folder with a trained model leaves. The same call goes on with it.

Order, masks and dropout come from the seed and what is saved, so a run that was stopped or killed ends in the same bits
as one that was not, on the same machine with the same number of threads; but not where its budget is time.
"""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bertie.errors import FolderError, InputError
from bertie.models.adapter_folder import ADAPTER, write_adapter
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.nn.low_rank import is_adapted, merged
from bertie.objectives.report import LossReport
from bertie.text.tokenizer import Tokenizer
from bertie.train.budget import Done
from bertie.train.checkpoint import Checkpoints
from bertie.train.distribution import ALONE, Ranks
from bertie.train.learning_rates import Learning
from bertie.train.log import Log
from bertie.train.loop import NotFiniteError, StepResult, count_tokens, take_step
from bertie.train.options import PretrainOptions
from bertie.train.run_data import AnyCorpus, prepare
from bertie.train.run_folder import (
    CHECKPOINTS,
    LAST_GOOD,
    MODEL,
    SUMMARY,
    begin,
    digest_of,
    is_finished,
    locked,
    read_object,
    sweep,
    write_summary,
)
from bertie.train.run_state import RunState
from bertie.train.source import Measure, RunOptions, RunSource
from bertie.train.stopping import Stopped, StopSignals

Record = dict[str, Any]


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
    tell: Callable[[Record], None] | None = None,
    ranks: Ranks = ALONE,
) -> Record:
    """Trains a model, or goes on; returns the summary. `base` is the digest of the model that `model` continues,
    `teacher` that of the one that it learns from.

    `config` is the text of a file to keep beside the options. `peak` says how many tokens a second there would be at
    the machine's peak, for rows of a length. `tell` gets every record of the log, and notices, as they come. Of many
    `ranks` only the first writes and tells. Everything that can be refused is refused before the folder is made. Raises
    Stopped after Ctrl-C or SIGTERM, when the state is saved.
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
    phases, paces = options.lengths.phases, None
    if peak is not None:
        paces = [peak(phase.length) for phase in phases]
    return run_in(
        Path(folder), model, data, tokenizer, options, resolved, config=config, paces=paces, tell=tell, ranks=ranks
    )


def run_in(
    target: Path,
    model: Model,
    data: RunSource,
    tokenizer: Tokenizer,
    options: RunOptions,
    resolved: Record,
    *,
    config: str | None = None,
    paces: Sequence[float] | None = None,
    tell: Callable[[Record], None] | None = None,
    ranks: Ranks = ALONE,
) -> Record:
    """Any run. `resolved` is all that decides its bits: a folder that was begun with anything else is refused. `paces`
    are tokens a second at the machine's peak, one for each phase of the course."""
    with ExitStack() as stack:
        log = None
        if ranks.leads:
            stack.enter_context(locked(target))
            begin(target, resolved, config)
            sweep(target)
            log = stack.enter_context(Log(target))
        ranks.wait()
        if not is_finished(target):
            signals = stack.enter_context(StopSignals())
            run = _Run(target, model, data, options, log, signals, paces, tell or (lambda record: None), ranks)
            run.digest = digest_of(resolved)
            try:
                run.go()
            except NotFiniteError as error:
                raise NotFiniteError(error.step, error.figure, run.keep_last_good(tokenizer, error.step)) from None
            run.finish(tokenizer)
            if stopping := ranks.largest(signals.received or 0):  # too late for the run, not for what would follow
                raise Stopped(stopping, run.state.steps)
        ranks.wait()
        return read_object(target / SUMMARY)


@dataclass
class _Window:
    """What happened since the last record of steps."""

    report: LossReport = field(default_factory=LossReport)
    num_tokens: int = 0
    seconds: float = 0.0  # of steps alone

    def add(self, result: StepResult, seconds: float) -> None:
        self.report = self.report + result.report
        self.num_tokens += result.num_tokens
        self.seconds += seconds


class _Run:
    def __init__(
        self,
        folder: Path,
        model: Model,
        data: RunSource,
        options: RunOptions,
        log: Log | None,  # None: another rank writes
        signals: StopSignals,
        paces: Sequence[float] | None,
        tell: Callable[[Record], None],
        ranks: Ranks,
    ):
        self.folder, self.model, self.data, self.options = folder, model, data, options
        self.log, self.signals, self.paces, self.tell, self.ranks = log, signals, paces, tell, ranks
        self.learning = Learning() if options.learning is None else options.learning.build(model)
        self.optimiser = options.adamw.build(model, self.learning.factor)
        self.checkpoints = Checkpoints(folder / CHECKPOINTS, options.keep)
        self.state = RunState(place=data.beginning)
        self.window, self.step_seconds = _Window(), 0.0
        self.ended = False
        self.digest = ""  # of all that decides the run

    def go(self) -> None:
        self._restore()
        self.ended = self._progress() >= 1 or self._out_of_patience()
        while not self.ended:
            try:
                self._step()
            except InputError:  # a row that cannot be used: mended or passed over, the run goes on from here
                self._save(self.state.steps)
                raise

    def _restore(self) -> None:
        restored = self.checkpoints.restore(self.model, self.optimiser)
        here = surroundings(self.ranks)
        if restored is None:
            self._note({"event": "start", "step": 0, **here})
            told = self.learning.told(self.model)
            for note in (*self.data.notes, *([] if told is None else [told])):
                self._note({"event": "note", "step": 0, "what": note})
            return
        if restored.facts.get("run", self.digest) != self.digest:
            hint = "take it away: the run goes on from the one before, or begins anew"
            where = str(self.checkpoints.path(restored.step))
            raise FolderError("the checkpoint is of another run", where=where, hint=hint)
        for told in restored.damaged:
            self._note({"event": "damaged", "step": restored.step, "checkpoint": told})
        self.state = RunState.restored(restored.facts)
        self.checkpoints.best = self.state.best["step"] if self.state.best else None
        why = [f"{name} was {restored.facts.get(name)}" for name in here if restored.facts.get(name) != here[name]]
        if not self.options.budget.exact:
            why.append("its budget is time")
        self._note({"event": "resume", "step": restored.step, **here, "exact": not why, "why": why})

    def _progress(self) -> float:
        return self.ranks.agree(self.options.budget.progress(self.state.done))

    def _step(self) -> None:
        options, state = self.options, self.state
        before = state.done
        # An evaluation may take what was left of the time: then this step is the last.
        begun = min(self._progress(), 1.0)
        place = self.data.course.enter(state.place, begun)
        micros = self.data.instances(place)
        num_tokens = self.ranks.total(count_tokens(micros))
        expected = Done(before.steps + 1, before.tokens + num_tokens, state.done.seconds + self.step_seconds)
        factor = self.ranks.agree(options.schedule.factor(begun, min(options.budget.progress(expected), 1.0)))
        self.learning.begin(state.steps)
        result = take_step(
            self.model,
            micros,
            self.optimiser,
            options.adamw,
            factor,
            step=state.steps,
            seed=options.seed,
            precision=options.precision,
            ranks=self.ranks,
            adversary=options.adversary,
        )
        state.add_step(result.num_tokens, self.data.course.after(place))
        state.counts.update({name: self.ranks.total(count) for name, count in self.data.take_counts().items()})
        self.step_seconds = state.done.seconds - before.seconds
        self.window.add(result, self.step_seconds)
        progress = self._progress()
        self.ended = progress >= 1
        if state.steps % options.log_every == 0 or self.ended:
            self._log_steps(result, min(progress, 1.0), place.phase)
        self._look_after()

    def _look_after(self) -> None:
        """What is due after a step: evaluating, saving, stopping."""
        options, done = self.options, self.state.steps
        improved = False
        if self.data.evaluation is not None and (done % options.eval_every == 0 or self.ended):
            improved = self._evaluate(self.data.evaluation)
            if self._out_of_patience() and not self.ended:
                told = f"no better for {self.state.waited} evaluations: the run ends after step {done:,}"
                self._note({"event": "note", "step": done, "what": told})
                self.ended = True
        stopping = self.ranks.largest(self.signals.received or 0)
        if done % options.save_every == 0 or self.ended or improved or stopping:
            self._save(done)
        if stopping and not self.ended:
            self._note({"event": "stopped", "step": done, "signal": stopping})
            raise Stopped(stopping, done)

    def _out_of_patience(self) -> bool:
        return self.options.patience is not None and self.state.waited >= self.options.patience

    def _evaluate(self, evaluation: Measure) -> bool:
        """Whether it is the best so far."""
        figures = evaluation(self.model)
        done, self.state.evaluation = self.state.steps, figures
        place = {"tokens": self.state.tokens, "seconds": round(self.state.done.seconds, 3)}
        self._note({"event": "evaluation", "step": done, **place, **figures})
        warning = evaluation.warning(figures)
        if warning is not None and self._progress() > self.options.schedule.warmup:
            self._note({"event": "warning", "step": done, "what": warning})
        best, rank = self.state.best, evaluation.rank(figures)
        known = (best["rank"], best["loss"]) if best else (math.inf, math.inf)
        self.state.waited = 0 if rank < known[0] else self.state.waited + 1
        if not (rank, figures["loss"]) < known:  # also where it is no number
            return False
        self.state.best = {"step": done, "loss": figures["loss"], "rank": rank}
        self.checkpoints.best = done
        return True

    def _save(self, done: int) -> None:
        if not self.ranks.leads:
            return
        path = self.checkpoints.save(
            done, self.model, self.optimiser, {**self.state.facts(), **surroundings(self.ranks), "run": self.digest}
        )
        self._note({"event": "saved", "step": done, "checkpoint": path.name})

    def _log_steps(self, result: StepResult, progress: float, phase: int) -> None:
        window, self.window = self.window, _Window()
        speed = window.num_tokens / max(window.seconds, 1e-9)
        record = {
            "event": "step",
            "step": self.state.steps,
            "loss": float(window.report.loss()),
            **window.report.means(),
            "lr": result.rate,
            "norm": result.norm,
            "tokens": self.state.tokens,
            "seconds": round(self.state.done.seconds, 3),
            "progress": progress,
            "tokens_per_second": speed,
        }
        if self.paces is not None:
            record["share_of_peak"] = speed / self.paces[phase]
        self._note(record)

    def finish(self, tokenizer: Tokenizer) -> None:
        """The model folder, then the summary."""
        if not self.ranks.leads:
            return
        if self.data.evaluation is not None and self.data.evaluation.keeps_best:
            self._take_best(self.data.evaluation)
        notes = [*self.data.notes, *self.data.told(self.state.counts), *self.write_model(tokenizer, MODEL)]
        learned, whole = self.learning.count(self.model, max(0, self.state.steps - 1))
        facts = {"seconds": self.state.done.seconds, "weights": {"learned": learned, "all": whole}, "notes": notes}
        write_summary(self.folder, {**self._figures(), **facts})
        self._note({"event": "finished", "step": self.state.steps})

    def _take_best(self, evaluation: Measure) -> None:
        """The best of all that were measured, with the thresholds that suit it."""
        if self.checkpoints.best is not None:
            self.checkpoints.load_weights(self.checkpoints.best, self.model)
        self.model.recipe = evaluation.tuned(self.model)
        self.state.evaluation = evaluation(self.model)

    def keep_last_good(self, tokenizer: Tokenizer, failed: int) -> Path | None:
        """The newest saved state that a step was taken from, as a model folder: what failed is the fault of the state
        that it began with."""
        restored = self.checkpoints.restore(self.model, self.optimiser, before=failed)
        if restored is None:
            return None
        self.state = RunState.restored(restored.facts)
        self.write_model(tokenizer, LAST_GOOD)
        return self.folder / LAST_GOOD

    def write_model(self, tokenizer: Tokenizer, name: str) -> list[str]:
        """What others cannot express of it leaves. Adapters are merged, and also kept apart."""
        if not self.ranks.leads:
            return []
        card = {**self.data.card, "training": self._figures()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is told by the caller
            notes = Pretrained(merged(self.model), tokenizer, card=card).save(self.folder / name)
        if is_adapted(self.model):
            notes += write_adapter(self.folder / name / ADAPTER, self.model, card)
            tokenizer.save(self.folder / name / ADAPTER)  # a table of words may have been added to the base's
        return notes

    def _figures(self) -> Record:
        state = self.state
        return {"steps": state.steps, "tokens": state.tokens, "best": state.best, "evaluation": state.evaluation}

    def _note(self, record: Record) -> None:
        if self.log is not None:
            self.log.write({**record, "time": round(time.time(), 3)})
            self.tell(record)


def surroundings(ranks: Ranks) -> Record:
    """What the bits depend on beside the options."""
    return {"torch": torch.__version__, "threads": torch.get_num_threads(), "processes": ranks.size}
