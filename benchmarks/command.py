"""What the benchmarks' command lines share: options enter, the run is alone on the machine, an exit code leaves."""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.environment import ROOT
from benchmarks.load import load_warning
from benchmarks.lock import only_one
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
    return parser


def positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def say(line: str) -> None:
    """Progress goes to stderr: stdout has the figures alone."""
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def started(modules: Mapping[str, tuple[str, Path]], threads: int, folder: Path) -> Iterator[dict[str, Worker]]:
    """One worker for each (contender's module, Python), all with the same environment, all stopped."""
    environment = {**dict.fromkeys(THREADS, str(threads)), **OTHERS}
    workers: dict[str, Worker] = {}
    try:
        for name, (module, python) in modules.items():
            say(f"starting {name}")
            log = folder / f"{module}.log"
            workers[name] = Worker(name, python, f"benchmarks.contenders.{module}", environment, log)
        yield workers
    finally:
        for worker in workers.values():
            worker.close()
