"""What the benchmarks' command lines share: options enter, the run is alone on the machine, an exit code leaves."""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.contenders.torch_engine import ONEDNN, VARIABLE, is_onednn
from benchmarks.environment import ROOT
from benchmarks.figures import OURS, SAME_ENGINE
from benchmarks.load import load_warning
from benchmarks.lock import only_one
from benchmarks.record import RESULTS
from benchmarks.worker import Worker
from bertie.errors import UserError

SHARED = Path(os.environ.get("BERTIE_SHARED", ROOT.parent / "shared"))
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
OTHERS = {"TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

Run = Callable[[argparse.Namespace, str | None], int]  # the second is a warning that the machine is not quiet


def run_alone(run: Run, options: argparse.Namespace) -> int:
    # An end from outside must run the clean-up too: a stopped worker does not notice that its run is gone.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        with only_one():
            warning = load_warning(os.getloadavg()[0])
            if warning:
                say(f"warning: {warning}")
            return run(options, warning)
    except UserError as error:
        say(f"error: {error}")
        return 2


def new_parser(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """With the options that all have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=positive, default=rounds, help=f"turns of every contender (default {rounds})")
    parser.add_argument(
        "--peers-python", default=os.environ.get("BERTIE_PEERS_PYTHON"), help="use this Python for the peers"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bar is broken")
    add_record(parser)
    return parser


def add_record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--record",
        action=argparse.BooleanOptionalAction,
        help="append the figures to the results, or do not (default: unless it is a trial)",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="where (default: RESULTS.md)")


def read_options(
    parser: argparse.ArgumentParser, words: Sequence[str] | None, trial: Sequence[str] = ()
) -> argparse.Namespace:
    """`trial` are options by which less is measured: other values than their defaults make the run a trial, and so do
    fewer rounds. The options' `trial` names them."""
    options = parser.parse_args(words)
    changed = [name for name in trial if _as_list(getattr(options, name)) != _as_list(parser.get_default(name))]
    if options.rounds < parser.get_default("rounds"):
        changed.append("rounds")
    options.trial = [f"--{name.replace('_', '-')}" for name in changed]
    return options


def _as_list(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def say(line: str) -> None:
    """Progress goes to stderr: stdout has the figures alone."""
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Place:
    """Where a contender runs: its module, its Python, and what its environment has beside that of all."""

    module: str
    python: Path
    environment: Mapping[str, str] = field(default_factory=dict)


def with_same_engine(peer: str, places: Mapping[str, Place]) -> dict[str, Place]:
    """A second row of the peer, with the engine that bertie chose. It runs only where that is not torch's own."""
    place = places[peer]
    return {**places, peer + SAME_ENGINE: Place(place.module, place.python, {VARIABLE: ONEDNN})}


@contextlib.contextmanager
def started(places: Mapping[str, Place], threads: int, folder: Path) -> Iterator[dict[str, Worker]]:
    """One worker for each place, all with the same threads, all stopped. Ours starts first: its engine decides whether
    second rows of peers have a point."""
    environment = {**dict.fromkeys(THREADS, str(threads)), **OTHERS}
    workers: dict[str, Worker] = {}
    try:
        for name in sorted(places, key=lambda name: name != OURS):
            place, is_second = places[name], name.endswith(SAME_ENGINE)
            if is_second and not is_onednn(workers[OURS].engine):
                continue
            say(f"starting {name}")
            log = folder / f"{name.replace(' ', '-')}.log"
            module, inner = f"benchmarks.contenders.{place.module}", {**environment, **place.environment}
            try:
                workers[name] = Worker(name, place.python, module, inner, log)
            except RuntimeError as error:
                if not is_second:
                    raise
                # The setting may need instructions that the processor advertises and does not have.
                say(f"warning: no row for {name}: {error}")
        yield {name: workers[name] for name in places if name in workers}
    finally:
        for worker in workers.values():
            worker.close()


def engines_of(workers: Mapping[str, Worker]) -> dict[str, str]:
    """What computes the products of each, where it tells."""
    return {name: worker.engine for name, worker in workers.items() if worker.engine}
