"""The `transformers` Trainer for some minutes: weights and masked rows enter, its curve on the held-out rows leaves.

`python -m experiments.peers.trainer DATA --minutes 20 --steps 3800 --out FILE`, DATA being a folder of `trainer_data`.
Batches, optimizer and padding are the Trainer's own. Learning rate, warm-up and decay are those of `bertie pretrain` in
a run of so many steps, of which the Trainer gets as far as its time allows. The clock stands during measurements.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from benchmarks.contenders.pretrain_trainer import FAMILIES, IGNORED, collate, rows_of
from transformers import BertForPreTraining, Trainer, TrainerCallback, TrainingArguments

ROWS = 32  # of a batch: as many tokens as bertie's, if all were full
RATE, WARMUP, DECAY, EPS, CLIP = 5e-4, 0.1, 0.01, 1e-6, 1.0
WITHOUT_END = 10_000_000  # steps: the clock ends it

Row = dict[str, torch.Tensor]


class Clock:
    def __init__(self, limit: float):
        """The training ends after so many seconds."""
        self.limit, self._before, self._begun = limit, 0.0, 0.0

    def run(self) -> None:
        self._begun = time.perf_counter()

    def stand(self) -> None:
        self._before, self._begun = self.seconds, 0.0

    @property
    def seconds(self) -> float:
        return self._before + (time.perf_counter() - self._begun if self._begun else 0.0)

    @property
    def over(self) -> bool:
        return self.seconds >= self.limit


class Measuring(TrainerCallback):
    """Measures every so many steps and at the end, and ends the training when the time is over."""

    def __init__(self, clock: Clock, rows: Sequence[Row], every: int):
        self.clock, self.rows, self.every = clock, rows, every
        self.curves: dict[str, list[list[float]]] = {"masked_lm": [], "masked_lm_accuracy": []}

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.clock.run()

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.clock.stand()
        over = self.clock.over
        if over or state.global_step % self.every == 0:
            figures = measure(given["model"], self.rows)
            for name, points in self.curves.items():
                points.append([self.clock.seconds / 60, figures[name]])
            print(f"step {state.global_step}, {self.clock.seconds / 60:.1f} minutes: {figures}", flush=True)
        control.should_training_stop = over
        self.clock.run()


class OnSchedule(Trainer):
    """A tenth of all steps upwards, the rest evenly down to 0."""

    all_steps: int

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        def factor(step: int) -> float:
            begun, ended = step / self.all_steps, (step + 1) / self.all_steps
            return min(1.0, ended / WARMUP) if begun < WARMUP else max(0.0, (1 - begun) / (1 - WARMUP))

        chosen = optimizer or self.optimizer
        assert chosen is not None
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(chosen, factor)
        return self.lr_scheduler


def measure(model: torch.nn.Module, rows: Sequence[Row]) -> dict[str, float]:
    """Means over all masked tokens, as bertie has them."""
    model.eval()
    loss, correct, count = 0.0, 0, 0
    with torch.inference_mode():
        for start in range(0, len(rows), ROWS):
            batch = collate(list(rows[start : start + ROWS]))
            labels = batch.pop("labels")
            del batch["next_sentence_label"]
            logits = model(**batch).prediction_logits[labels != IGNORED]
            targets = labels[labels != IGNORED]
            loss += float(F.cross_entropy(logits, targets, reduction="sum"))
            correct += int((logits.argmax(-1) == targets).sum())
            count += len(targets)
    model.train()
    return {"masked_lm": loss / count, "masked_lm_accuracy": correct / count}


def train(data: Path, minutes: float, all_steps: int, eval_every: int, seed: int) -> dict[str, Any]:
    label = FAMILIES["bert"].relation
    rows, held_out = rows_of(str(data / "train.npz"), label), rows_of(str(data / "held-out.npz"), label)
    clock = Clock(minutes * 60)
    measuring = Measuring(clock, held_out, eval_every)
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            output_dir=folder,
            use_cpu=True,
            per_device_train_batch_size=ROWS,
            max_steps=WITHOUT_END,
            learning_rate=RATE,
            weight_decay=DECAY,
            adam_epsilon=EPS,
            max_grad_norm=CLIP,
            seed=seed,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        model = BertForPreTraining.from_pretrained(data / "model")
        trainer = OnSchedule(
            model=model, args=options, train_dataset=rows, data_collator=collate, callbacks=[measuring]
        )
        trainer.all_steps = all_steps
        trainer.train()
    steps = trainer.state.global_step
    tokens = steps * ROWS * sum(len(row["input_ids"]) for row in rows) / len(rows)  # rows are drawn evenly
    figures = {
        **{name: points[-1][1] for name, points in measuring.curves.items()},
        "steps": steps,
        "tokens": round(tokens),
        "minutes": clock.seconds / 60,
        "tokens_per_second": tokens / clock.seconds,
        "epochs": steps * ROWS / len(rows),  # above 1 some rows were seen again with the same masks
    }
    return {"figures": figures, "curves": measuring.curves}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True, help="of the whole schedule")
    parser.add_argument("--eval-every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    result = train(options.data, options.minutes, options.steps, options.eval_every, options.seed)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result) + "\n", "utf-8")


if __name__ == "__main__":
    main()
