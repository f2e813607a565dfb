"""What a quickstart was asked for, where its files are, and how much it can learn in its time."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from pydantic import Field, model_validator

from bertie.batch import Batch, Ragged
from bertie.disk import write_file
from bertie.errors import FolderError, SpecError
from bertie.models.pretrained import Pretrained, load
from bertie.quickstart.finding import MAX_LENGTH
from bertie.spec import Spec
from bertie.text.sentences import check_language
from bertie.train.folder.run_folder import MODEL
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.loop import CLIP
from bertie.train.pretraining.options import differences

MINUTES = 8.3
# Shares of all the time. The encoder trains in what the other stages have not used, but at least in its own share.
PRETRAINING, AFTER_TRAINING, LEAST_ENCODER = 0.2, 0.07, 0.3

FEWEST_TEXTS = 500  # to learn from, however little time there is: fewer teach nothing
SAMPLE, STEP = 256, 32  # texts to measure the pace on, and texts of one step
OVERHEAD = 1.2  # a run also reads rows and evaluates itself: it took 1.05 to 1.3 times as long when measured


class Plan(Spec):
    minutes: float = Field(default=MINUTES, gt=0)
    texts: tuple[str, ...] = ()  # a user's own files; none: the documentation of this Python
    language: str = "en"
    base: str | None = None  # a model folder to start with; None: a model is trained from scratch

    @model_validator(mode="after")
    def _documentation_is_english(self) -> "Plan":
        if self.language != "en" and not self.texts:
            raise ValueError("Python's documentation is in English: give your own texts with `text`")
        return self

    @property
    def words(self) -> list[str]:
        """What differs from the defaults, as on the command line."""
        minutes = [] if self.minutes == MINUTES else ["--minutes", f"{self.minutes:g}"]
        texts = [word for text in self.texts for word in ("--text", text)]
        language = [] if self.language == "en" else ["--language", self.language]
        return [*minutes, *texts, *language, *([] if self.base is None else ["--base", self.base])]


def asked_options(
    minutes: float | None, texts: Sequence[str], language: str | None, base: str | None
) -> dict[str, Any]:
    """The options that were given, with absolute paths, so that the quickstart can be continued from anywhere."""
    options = {
        "minutes": minutes,
        "texts": tuple(map(_absolute, texts)) or None,
        "language": language and check_language(language),
        "base": base and _absolute(base),
    }
    return {name: value for name, value in options.items() if value is not None}


def _absolute(name: str) -> str:
    """What is not a path here is a pattern, or a name on the hub."""
    return str(Path(name).resolve()) if Path(name).exists() else name


@dataclass(frozen=True)
class QuickstartFolder:
    """The folder of a quickstart, and names for what is in it."""

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    @property
    def entries(self) -> Path:
        return self / "entries.jsonl"

    @property
    def documents(self) -> Path:
        return self / "documents.jsonl"

    @property
    def collection(self) -> Path:
        """What is searched."""
        return self / "collection.jsonl"

    @property
    def vocabulary(self) -> Path:
        return self / "vocabulary"

    @property
    def corpus(self) -> Path:
        return self / "corpus"

    @property
    def pretraining(self) -> Path:
        return self / "pretraining"

    @property
    def whitened(self) -> Path:
        return self / "whitened"

    @property
    def encoder(self) -> Path:
        return self / "encoder"

    @property
    def vectors(self) -> Path:
        """Of the collection, by the encoder trained here."""
        return self / "vectors.npy"

    @property
    def real_vectors(self) -> Path:
        """Of the collection, by real weights."""
        return self / "real-vectors.npy"

    @property
    def page(self) -> Path:
        return self / "results.html"

    @property
    def log(self) -> Path:
        return self / "log.txt"

    def rows(self, name: str, split: str) -> Path:
        return self / f"{name}-{split}.jsonl"

    def base(self, plan: Plan) -> str:
        """The model that the encoder starts with."""
        if plan.base is not None:
            return plan.base
        return str(self.whitened if (self.whitened / "config.json").exists() else self.pretraining / MODEL)

    def start(self, asked: Mapping[str, Any]) -> Plan:
        """Returns the plan of the folder, which is created if missing. Options that are not given keep their values;
        they may change until the first stage is finished, so that a wrong name can be corrected."""
        file = self / "quickstart.json"
        if "base" in asked and not self.entries.exists():
            load(asked["base"])  # raises before anything is done where this is no model
        if not file.exists():
            if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
                hint = "name a new folder with `out`"
                raise FolderError(
                    "the folder is not empty and does not hold a quickstart", where=str(self.folder), hint=hint
                )
            return self._write_plan(Plan.parse(dict(asked), where="bertie quickstart"))
        before = Plan.from_json(file.read_text("utf-8"), where=str(file))
        plan = before.replace(**asked)
        if not self.entries.exists():
            return self._write_plan(plan)
        if changed := differences(before.model_dump(), plan.model_dump()):
            what = f"this quickstart was started with other options: {'; '.join(changed)}"
            raise SpecError(what, where=str(self.folder), hint="give the same, or name a new folder with `out`")
        return plan

    def _write_plan(self, plan: Plan) -> Plan:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(self / "quickstart.json", plan.to_json().encode())
        except OSError as error:
            hint = "name another folder with `out`"
            raise FolderError(f"cannot be written ({error.strerror})", where=str(self.folder), hint=hint) from None
        return plan

    def read_times(self) -> dict[str, float]:
        """Seconds of each stage that was started."""
        file = self / "times.json"
        return json.loads(file.read_bytes()) if file.exists() else {}

    def add_time(self, stage: str, seconds: float) -> None:
        """Times add up when a stage is stopped and continued; a killed one is not counted."""
        times = self.read_times()
        times[stage] = round(times.get(stage, 0.0) + seconds, 1)
        write_file(self / "times.json", json.dumps(times).encode())

    def num_pairs(self, plan: Plan, texts: Sequence[str]) -> int:
        """How many pairs the encoder has time for. It is measured once: a continued stage needs the same words."""
        file = self / "pace.json"
        if not file.exists():
            pace = {"texts_per_second": measure_pace(load(self.base(plan)), texts), "seconds": self._seconds_left(plan)}
            write_file(file, json.dumps(pace).encode())
        pace = json.loads(file.read_bytes())
        return max(FEWEST_TEXTS, round(pace["seconds"] * pace["texts_per_second"])) // 2

    def _seconds_left(self, plan: Plan) -> float:
        """For the encoder."""
        total = 60 * plan.minutes
        return max(LEAST_ENCODER * total, (1 - AFTER_TRAINING) * total - sum(self.read_times().values()))


def measure_pace(model: Pretrained, texts: Sequence[str]) -> float:
    """Texts per second that a model learns from, measured by whole training steps of the encoder."""
    chosen = texts[:: max(1, len(texts) // SAMPLE)][:SAMPLE]
    steps = [chosen[start : start + STEP] for start in range(0, len(chosen), STEP)]
    # The first step, in which kernels are compiled, is made twice and counted once.
    _, *seconds = _step_seconds(model, [steps[0], *steps])
    return median(len(step) / took for step, took in zip(steps, seconds, strict=True)) / OVERHEAD


def _step_seconds(model: Pretrained, steps: Sequence[Sequence[str]]) -> Iterator[float]:
    encoder, tokenizer = model.model.encoder.train(), model.tokenizer
    assert tokenizer is not None
    optimizer = AdamWSpec().build(encoder)
    for texts in steps:
        start = time.perf_counter()
        flat = tokenizer.encode_ids(texts, max_length=MAX_LENGTH)
        tokens = Ragged(torch.from_numpy(flat.ids), torch.from_numpy(flat.lengths))
        encoder(Batch({"tokens": tokens})).states.values.square().mean().backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        yield time.perf_counter() - start
