"""`python -m experiments NAME`: an experiment is run, or goes on; its table leaves on stdout, progress on stderr."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from benchmarks.environment import peers_python
from benchmarks.load import load_warning
from benchmarks.lock import only_one

from bertie.errors import UserError
from experiments import (
    ablations,
    adapters,
    against_trainer,
    chinese,
    descendants,
    features,
    finetuning,
    full_runs,
    learning_per_minute,
    made_up_tasks,
    noise,
    old_and_new,
    pretrained_or_not,
    pretraining_pays,
    siamese,
    small_models,
    spaces,
)
from experiments.cell import Cell, in_order
from experiments.experiment import Experiment, Setting
from experiments.report import rows_of, table, write_report
from experiments.runner import Runner, minutes_told
from experiments.store import ROOT, Store

EXPERIMENTS: dict[str, Experiment] = {
    "ablations": ablations.EXPERIMENT,
    "adapters": adapters.EXPERIMENT,
    "against_trainer": against_trainer.EXPERIMENT,
    "chinese": chinese.EXPERIMENT,
    "descendants": descendants.EXPERIMENT,
    "features": features.EXPERIMENT,
    "finetuning": finetuning.EXPERIMENT,
    "full_runs": full_runs.EXPERIMENT,
    "learning_per_minute": learning_per_minute.EXPERIMENT,
    "made_up_tasks": made_up_tasks.EXPERIMENT,
    "noise": noise.EXPERIMENT,
    "old_and_new": old_and_new.EXPERIMENT,
    "pretrained_or_not": pretrained_or_not.EXPERIMENT,
    "pretraining_pays": pretraining_pays.EXPERIMENT,
    "siamese": siamese.EXPERIMENT,
    "small_models": small_models.EXPERIMENT,
    "spaces": spaces.EXPERIMENT,
}


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    # An end from outside must reach the command that runs, so that it can save.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    setting = Setting(options.data / "data", options.minutes, tuple(options.seeds) if options.seeds else None)
    try:
        if options.list:
            return show_list(setting, options.store)
        experiment = EXPERIMENTS[options.name]
        cells = list(experiment.cells(setting))
        if options.dry_run:
            return show_plan(cells, options.store)
        with only_one() if experiment.alone else nullcontext():
            return run(options, experiment, cells)
    except UserError as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say("stopped; the same command goes on")
        return 130


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    runs = ROOT / "runs" / "experiments"
    shared = Path(os.environ.get("BERTIE_SHARED", ROOT.parent / "shared"))
    parser.add_argument("name", nargs="?", choices=EXPERIMENTS, help="the experiment")
    parser.add_argument("--list", action="store_true", help="which experiments there are, and how far they are")
    parser.add_argument("--dry-run", action="store_true", help="print the cells and their commands")
    parser.add_argument("--minutes", type=positive, help="of each cell, instead of its own: for a trial")
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of the experiment's own")
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        choices=range(1, 65),
        metavar="N",
        help="cells at once; not where the clock ends a run",
    )
    parser.add_argument("--data", type=Path, default=shared, help="the folder with real data")
    parser.add_argument(
        "--store", type=lambda word: Store(Path(word)), default=Store(runs), help="where results are kept"
    )
    parser.add_argument("--out", type=Path, default=runs / "reports", help="where table and picture are written")
    parser.add_argument(
        "--peers-python", default=os.environ.get("BERTIE_PEERS_PYTHON"), help="use this Python for the peers"
    )
    options = parser.parse_args(words)
    if not options.name and not options.list:
        parser.error(f"name an experiment ({', '.join(EXPERIMENTS)}), or give --list")
    return options


def positive(word: str) -> float:
    number = float(word)
    if not number > 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def say(line: str) -> None:
    """Progress goes to stderr: stdout has the tables alone."""
    print(line, file=sys.stderr, flush=True)


def show_list(setting: Setting, store: Store) -> int:
    for name, experiment in EXPERIMENTS.items():
        cells = in_order(experiment.cells(setting))
        finished = sum(store.result(cell) is not None for cell in cells)
        print(
            f"{name}: {experiment.about}\n    {finished} of {len(cells)} cells are finished, {left_told(cells, store)}"
        )
    return 0


def show_plan(cells: Sequence[Cell], store: Store) -> int:
    for cell in in_order(cells):
        print(f"{cell.title}: {store.state(cell)}, {store.home(cell)}")
        for command in cell.commands:
            print(f"    {shlex.join(command)}")
    print(left_told(in_order(cells), store))
    return 0


def left_told(cells: Sequence[Cell], store: Store) -> str:
    left = sum(cell.minutes for cell in cells if store.result(cell) is None)
    return f"about {minutes_told(left)} to go"


def run(options: argparse.Namespace, experiment: Experiment, cells: Sequence[Cell]) -> int:
    warning = load_warning(os.getloadavg()[0])
    if warning:
        say(f"warning: {warning}")
    say(f"{options.name}: {left_told(in_order(cells), options.store)}")
    outcome = Runner(options.store, lambda: peers_python(options.peers_python), say, options.jobs).run(cells)
    rows = rows_of(cells, outcome.results)
    print("\n".join([*table(experiment.columns, rows), "", *experiment.conclude(rows)]))
    name = options.name if options.minutes is None else f"{options.name}-{options.minutes:g}"  # a trial
    for path in write_report(name, experiment, rows, options.out):
        say(f"written: {path}")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
