"""What a token of a run costs: the run's own first steps are taken again on one thread, and their CPU time is measured.

`python -m experiments.cpu_time RUN --out FILE`: CPU seconds hardly depend on what else the machine does.
"""

import argparse
import json
import time
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import quantiles

import torch

from bertie.jobs.text.corpus_jobs import open_training_corpus
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.train.folder.run_folder import read_object
from bertie.train.loop import count_tokens, take_step
from bertie.train.pretraining.corpus_data import prepare
from bertie.train.pretraining.options import PretrainOptions

SECONDS, LEAST = 12.0, 4  # of CPU time, steps; shared by the phases of a curriculum


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"microseconds": cpu_time(options.run, options.seconds)}) + "\n", "utf-8")


def cpu_time(run: Path, seconds: float) -> float:
    """Microseconds of one thread per token, masking included. Of some steps the lower quartile counts, since other work
    on the machine slows some of them; of the phases of a curriculum the mean."""
    decided = read_object(run / "options.json")
    options, recipe = PretrainOptions.parse(decided["options"]), Recipe.parse(decided["recipe"])
    config = tomllib.loads((run / "config.toml").read_text("utf-8"))
    corpus, tokenizer = open_training_corpus(Path(config["data"]["corpus"]), None)
    data = prepare(corpus, recipe, tokenizer, options)
    model = Model.new(recipe, options.seed)
    optimizer = options.optimizer.build(model)
    begins = [*options.lengths.begins(), 1.0]
    cost = 0.0
    for begin, end in pairwise(begins):
        place, taken, spent = data.data_schedule.enter(None, begin), [], 0.0
        while spent < seconds / (len(begins) - 1) or len(taken) < LEAST:
            begun = time.process_time()
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
            lasted = time.process_time() - begun
            taken.append(lasted / count_tokens(micros))
            place, spent = data.data_schedule.after(place), spent + lasted
        cost += (end - begin) * quantiles(taken[1:], n=4)[0]  # the first one fills caches
    return 1e6 * cost


if __name__ == "__main__":
    main()
