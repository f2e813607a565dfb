"""One measure for models that were trained on different samples: a model folder and a corpus enter, figures leave.

`python -m experiments.same_rows RUN CORPUS --out FILE`: the loss and the accuracy of predicting masked tokens on
held-out single stretches of text, once with single tokens masked, once with whole words.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch

import bertie
from bertie.data.masking import Chooser, EachToken, WholeWords
from bertie.data.samples.frame import Frame
from bertie.data.samples.numbered_samples import build_samples
from bertie.data.shapes import Segments
from bertie.jobs.text.corpus_jobs import open_corpus
from bertie.objectives.loss_report import LossReport
from bertie.objectives.masked_lm import MaskedLM
from bertie.train.instances import Corruption, fixed_instances, vocabulary_of
from bertie.train.pretraining.held_out import hold_out

MASKS: dict[str, Chooser] = {"token": EachToken(), "word": WholeWords()}
LENGTH, HELD_OUT, NUM_ROWS, MICRO_TOKENS = 128, 100, 512, 4096  # where pretrain has them too: its defaults


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=NUM_ROWS)
    options = parser.parse_args(words)
    options.out.write_text(json.dumps(measure(options.run, options.corpus, options.rows)) + "\n", "utf-8")


def measure(run: Path, folder: Path, num_rows: int) -> dict[str, float]:
    model = bertie.load(run).model.eval()
    corpus, tokenizer = open_corpus(folder, None)
    _, held = hold_out(corpus, HELD_OUT)
    samples = build_samples(Segments(length=LENGTH), held, Frame.of(tokenizer))
    figures = {}
    for name, choose in MASKS.items():
        objective = MaskedLM(samples=Segments(length=LENGTH), choose=choose)
        corruption = Corruption((objective,), vocabulary_of(tokenizer))
        with torch.inference_mode():
            batches = fixed_instances(samples, corruption, num_rows, MICRO_TOKENS)
            reports = (objective.loss(model.heads["masked-lm"], model.encoder, batch) for batch in batches)
            report = sum(reports, LossReport())
        means = report.means()
        figures[f"{name}_loss"], figures[f"{name}_accuracy"] = means["masked_lm"], means["masked_lm_accuracy"]
    return figures


if __name__ == "__main__":
    main()
