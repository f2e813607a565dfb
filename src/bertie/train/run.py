"""A run: a corpus, a model and options enter, a run folder with a trained model leaves. The same call goes on with it.

Order, masks and dropout come from (seed, step), so a run that was stopped or killed ends in the same bits as one that
was not, on the same machine with the same number of threads.
"""

import hashlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bertie.data.corpus import Corpus, check_tokenizer
from bertie.data.samples.building import build_samples
from bertie.data.samples.frame import Frame
from bertie.data.samples.source import Documents
from bertie.errors import TokenizerError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.objectives.report import LossReport
from bertie.text.tokenizer import Tokenizer
from bertie.train.checkpoint import Checkpoints
from bertie.train.evaluation import Evaluation, token_frequencies
from bertie.train.held_out import hold_out
from bertie.train.instances import Corruption, Instances, fixed_instances, sample_shape, vocabulary_of
from bertie.train.log import Log
from bertie.train.loop import NotFiniteError, StepResult, train
from bertie.train.options import PretrainOptions
from bertie.train.run_folder import CHECKPOINTS, MODEL, begin, is_finished, locked, read_object, sweep, write_summary
from bertie.train.stopping import Stopped, StopSignals

Record = dict[str, Any]


def pretrain(
    folder: str | Path,
    model: Model,
    corpus: Corpus,
    tokenizer: Tokenizer,
    options: PretrainOptions,
    *,
    base: str | None = None,
    tell: Callable[[Record], None] | None = None,
) -> Record:
    """Trains a model, or goes on; returns the summary. `base` is the digest of the model that `model` continues.

    `tell` gets every record of the log, and notices, as they come. Everything that can be refused is refused before
    the folder is made. Raises Stopped after Ctrl-C or SIGTERM, when the state is saved.
    """
    target = Path(folder)
    check_tokenizer(corpus.manifest.tokenizer, tokenizer, str(corpus.folder))
    if tokenizer.size > model.recipe.vocab_size:
        what = f"the corpus has {tokenizer.size:,} ids, the model only {model.recipe.vocab_size:,} rows"
        raise TokenizerError(what, hint="they belong to different vocabularies")
    resolved = {
        "options": options.model_dump(mode="json"),
        "recipe": model.recipe.model_dump(mode="json"),
        "from": base,
        "corpus": corpus_digest(corpus),
        "tokenizer": tokenizer.digest,
    }
    data = prepare(corpus, model, tokenizer, options)
    with locked(target):
        begin(target, resolved)
        if is_finished(target):
            return read_object(target / "summary.json")
        sweep(target)
        with Log(target) as log, StopSignals() as signals:
            run = _Run(target, model, data, options, log, signals, tell or (lambda record: None))
            run.go()
            return run.finish(tokenizer)


@dataclass(frozen=True)
class RunData:
    instances: Instances
    evaluation: Evaluation | None


def prepare(corpus: Corpus, model: Model, tokenizer: Tokenizer, options: PretrainOptions) -> RunData:
    """The data of a run; the first step's is made, so that what cannot work is refused now."""
    shape = sample_shape(model.recipe, options.length)
    corruption = Corruption(model.recipe.objectives, vocabulary_of(tokenizer))
    frame = Frame.of(tokenizer)
    learned: Documents = corpus
    evaluation = None
    if options.held_out:
        learned, held = hold_out(corpus, options.held_out)
        rows = fixed_instances(build_samples(shape, held, frame), corruption, options.eval_rows, options.micro_tokens)
        evaluation = Evaluation(rows, token_frequencies(learned, tokenizer.size))
    samples = build_samples(shape, learned, frame)
    instances = Instances(samples, corruption, options.batch_tokens, options.micro_tokens, options.seed)
    instances(0)
    return RunData(instances, evaluation)


def corpus_digest(corpus: Corpus) -> str:
    """Of the bytes of all shards, in their order."""
    return hashlib.sha256("\n".join(shard.sha256 for shard in corpus.manifest.shards).encode()).hexdigest()


@dataclass
class _Window:
    """What happened since the last record of steps."""

    report: LossReport = field(default_factory=LossReport)
    num_tokens: int = 0
    seconds: float = 0.0

    def add(self, result: StepResult, seconds: float) -> None:
        self.report = self.report + result.report
        self.num_tokens += result.num_tokens
        self.seconds += seconds


class _Run:
    def __init__(
        self,
        folder: Path,
        model: Model,
        data: RunData,
        options: PretrainOptions,
        log: Log,
        signals: StopSignals,
        tell: Callable[[Record], None],
    ):
        self.folder, self.model, self.data, self.options = folder, model, data, options
        self.log, self.signals, self.tell = log, signals, tell
        self.optimiser = options.adamw.build(model)
        self.checkpoints = Checkpoints(folder / CHECKPOINTS, options.keep)
        self.state: Record = {"tokens": 0, "seconds": 0.0, "best": None, "evaluation": None, **surroundings()}

    def go(self) -> None:
        first = self._restore()
        options = self.options
        steps = train(
            self.model,
            self.data.instances,
            self.optimiser,
            options.adamw,
            options.schedule,
            num_steps=options.steps,
            first_step=first,
            seed=options.seed,
        )
        window, begun = _Window(), time.perf_counter()
        try:
            for result in steps:
                window.add(result, time.perf_counter() - begun)
                done = result.step + 1
                self.state["tokens"] += result.num_tokens
                if done % options.log_every == 0 or done == options.steps:
                    self._log_steps(done, result, window)
                    window = _Window()
                self._look_after(done)
                begun = time.perf_counter()
        except NotFiniteError as error:
            self._save(error.step)  # the step was not taken: this is the last good state
            raise

    def _restore(self) -> int:
        restored = self.checkpoints.restore(self.model, self.optimiser)
        here = surroundings()
        if restored is None:
            self._note({"event": "start", "step": 0, **here})
            return 0
        for told in restored.damaged:
            self._note({"event": "damaged", "step": restored.step, "checkpoint": told})
        before = {name: restored.facts.get(name) for name in here}
        self.state = {**self.state, **{name: restored.facts[name] for name in self.state}, **here}
        self.checkpoints.best = self.state["best"]["step"] if self.state["best"] else None
        self._note({"event": "resume", "step": restored.step, **here, "exact": before == here})
        return restored.step

    def _look_after(self, done: int) -> None:
        """What is due after so many steps: evaluating, saving, stopping."""
        options, last = self.options, done == self.options.steps
        improved = False
        if self.data.evaluation is not None and (done % options.eval_every == 0 or last):
            improved = self._evaluate(done, self.data.evaluation)
        stopping = self.signals.received
        if done % options.save_every == 0 or last or improved or stopping:
            self._save(done)
        if stopping and not last:
            self._note({"event": "stopped", "step": done, "signal": stopping})
            raise Stopped(stopping, done)

    def _evaluate(self, done: int, evaluation: Evaluation) -> bool:
        """Whether it is the best so far."""
        figures = evaluation(self.model)
        self.state["evaluation"] = figures
        beaten = evaluation.beats_baseline(figures)
        self._note({"event": "evaluation", "step": done, **figures})
        if not beaten and done > self.options.schedule.warmup:
            self._note({"event": "warning", "step": done, "what": "not better than predicting by frequency alone"})
        best = self.state["best"]
        if best is not None and figures["loss"] >= best["loss"]:
            return False
        self.state["best"] = {"step": done, "loss": figures["loss"]}
        self.checkpoints.best = done
        return True

    def _save(self, done: int) -> None:
        path = self.checkpoints.save(done, self.model, self.optimiser, self.state)
        self._note({"event": "saved", "step": done, "checkpoint": path.name})

    def _log_steps(self, done: int, result: StepResult, window: _Window) -> None:
        self.state["seconds"] += window.seconds
        record = {
            "event": "step",
            "step": done,
            "loss": float(window.report.loss()),
            **window.report.means(),
            "lr": result.rate,
            "norm": result.norm,
            "tokens": self.state["tokens"],
            "tokens_per_second": window.num_tokens / max(window.seconds, 1e-9),
        }
        self._note(record)

    def finish(self, tokenizer: Tokenizer) -> Record:
        """The model folder, then the summary."""
        state = self.state
        figures = {"steps": self.options.steps, **{name: state[name] for name in ("tokens", "best", "evaluation")}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it could not express is told below
            notes = Pretrained(self.model, tokenizer, card={"training": figures}).save(self.folder / MODEL)
        summary = {**figures, "seconds": state["seconds"], "notes": notes}
        write_summary(self.folder, summary)
        self._note({"event": "finished", "step": self.options.steps})
        return summary

    def _note(self, record: Record) -> None:
        self.log.write({**record, "time": round(time.time(), 3)})
        self.tell(record)


def surroundings() -> Record:
    """What the bits depend on beside the options."""
    return {"torch": torch.__version__, "threads": torch.get_num_threads()}
