"""Measures how fast and how accurate each engine is on this machine, in a child process, once.

The child may die of an instruction that the processor only advertises, hang, or give wrong numbers: it is then as if
the engine did not exist. Answers are kept in the user's cache folder. Run as a script, this file is that child.
"""

import contextlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from bertie.disk import is_private, write_file
from bertie.machine import cache_file, cache_key, signal_name
from bertie.nn.products.choice import SHAPES, Class, Role
from bertie.nn.products.engines import ENGINES, StillWeights

VERSION = 2  # of what is measured; another one makes old answers void
NUM_ROWS = {Class.VOCABULARY: 192}  # as many predictions as a step of 1,280 tokens has; others have
USUAL_ROWS = 1024
SECONDS = 0.02  # for each product, at least three times
TIME_LIMIT = 90.0
CHILD = (sys.executable, "-P", "-m", "bertie.nn.products.measuring")
MOST_CACHED = 8


class Measured(BaseModel):
    model_config = ConfigDict(frozen=True)

    speed: float = Field(gt=0, allow_inf_nan=False)  # FLOP/s
    error: float  # norm of the difference from float64 over the norm of the result; the worse of two kinds of states


class EngineReport(BaseModel):
    model_config = ConfigDict(frozen=True)

    products: dict[str, Measured] = {}  # by role and class, on one thread
    note: str = ""  # why it does not run


Reports = dict[str, EngineReport]


def measured_engines(
    short: bool = False,
    refresh: bool = False,
    *,
    child: Sequence[str] = CHILD,
    time_limit: float = TIME_LIMIT,
    cache: Path | None = None,
) -> Reports:
    """A report on every engine: on those with 16 bits if `short`. `child` gets names of engines."""
    file = cache or cache_file().with_name("engines.json")
    key = f"{VERSION}-{cache_key()}"
    wanted = [name for name, engine in ENGINES.items() if engine.exact or short]
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, Timeout):  # others that measure now would be in each other's way
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.enter_context(FileLock(file.with_suffix(".lock"), timeout=time_limit))
        known = {} if refresh else read_reports(file).get(key, {})
        missing = [name for name in wanted if name not in known]
        if missing:
            # Torch's own is measured beside the others, in turn with them, so that a busy moment harms all alike.
            found = measure_apart(["torch", *(name for name in missing if name != "torch")], child, time_limit)
            known = {**found, **{name: report for name, report in known.items() if name not in found}}
            if known["torch"].products:  # otherwise no child could start: no property of the machine
                write_reports(file, key, known)
    return {name: known[name] for name in wanted}


def measure_apart(names: Sequence[str], child: Sequence[str] = CHILD, time_limit: float = TIME_LIMIT) -> Reports:
    """All in one child; each in its own where that one fails."""
    try:
        return run_child(names, child, time_limit)
    except ChildError as error:
        if len(names) == 1:
            return {names[0]: EngineReport(note=str(error))}
        return {name: measure_apart([name], child, time_limit)[name] for name in names}


class ChildError(Exception):
    """A child that gave no answer, and why."""


def run_child(names: Sequence[str], child: Sequence[str], time_limit: float) -> Reports:
    command = [*child, *names]
    options = {"capture_output": True, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, timeout=time_limit, check=False, **options)  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        raise ChildError(f"gave no answer within {time_limit:g} s") from None
    except OSError as error:
        raise ChildError(f"could not be measured ({error.strerror})") from None
    if done.returncode < 0:
        raise ChildError(f"crashes ({signal_name(-done.returncode)})")
    try:
        answer = json.loads(done.stdout.splitlines()[-1])  # libraries may have printed before it
        return {name: EngineReport.model_validate(answer[name]) for name in names}
    except (IndexError, KeyError, TypeError, ValueError, ValidationError):
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise ChildError(f"fails (exit code {done.returncode}: {lines[-1][:200]})") from None


# --- the cache


def read_reports(file: Path) -> dict[str, Reports]:
    """What was measured before; nothing where the file is missing, broken or open to other users."""
    try:
        if not file.is_file() or not is_private(file):
            return {}
        entries = json.loads(file.read_text(encoding="utf-8"))
        return {
            key: {name: EngineReport.model_validate(report) for name, report in found.items() if name in ENGINES}
            for key, found in entries.items()
        }
    except (OSError, ValueError, ValidationError, AttributeError, TypeError, RecursionError):
        return {}


def write_reports(file: Path, key: str, reports: Mapping[str, EngineReport]) -> None:
    """Whole or not at all. A folder that cannot be written costs a new measurement next time, no more."""
    entries = {**read_reports(file), key: dict(reports)}
    newest = list(entries.items())[-MOST_CACHED:]
    text = json.dumps({one: {name: report.model_dump() for name, report in all.items()} for one, all in newest})
    with contextlib.suppress(OSError):
        write_file(file, text.encode())
        file.chmod(0o600)


# --- inside the child


def factors(role: Role, kind: Class, num_rows: int | None = None, heavy: bool = False) -> tuple[Tensor, Tensor]:
    """The two matrices of a product, as a model has them: for `linear` states and weight, for `multiply` both factors.

    `heavy` states have a few large columns, as those of trained models do."""
    generator = torch.Generator().manual_seed(0)
    size, width = SHAPES[kind]
    rows = num_rows or NUM_ROWS.get(kind, USUAL_ROWS)
    states = torch.randn(rows, width, generator=generator)
    if heavy:
        states[:, ::97] *= 30
    weight = torch.randn(size, width, generator=generator) / math.sqrt(width)
    gradient = torch.randn(rows, size, generator=generator) * 1e-3
    return {
        Role.INFERENCE: (states, weight),
        Role.FORWARD: (states, weight.t()),
        Role.STATES_GRADIENT: (gradient, weight),
        Role.WEIGHT_GRADIENT: (gradient.t(), states),
    }[role]


def relative_error(name: str, role: Role, first: Tensor, second: Tensor) -> float:
    """Of some rows."""
    with torch.no_grad():
        found = _call(name, role, first, second)[:16].double()
        exact = first[:16].double() @ (second.t() if role is Role.INFERENCE else second).double()
    return float((found - exact).norm() / exact.norm())


def _call(name: str, role: Role, first: Tensor, second: Tensor) -> Tensor:
    engine = ENGINES[name]
    if role is Role.INFERENCE:
        return engine.linear(first, second, None)
    assert engine.multiply is not None
    return engine.multiply(first, second)


def measure_here(names: Sequence[str]) -> Reports:
    """Every product by every engine, in turn, on one thread: which is the fastest then does not depend on what else
    the machine does."""
    torch.set_num_threads(1)
    found: dict[str, dict[str, Measured]] = {name: {} for name in names}
    for role in Role:
        able = [name for name in names if role is Role.INFERENCE or ENGINES[name].multiply is not None]
        for kind in Class:
            for name, speed in speeds(able, role, kind).items():
                error = max(relative_error(name, role, *factors(role, kind, 64, heavy)) for heavy in (False, True))
                measured = Measured(speed=speed, error=error if math.isfinite(error) else math.inf)
                found[name][f"{role}, {kind}"] = measured
    return {name: EngineReport(products=products) for name, products in found.items()}


def speeds(names: Sequence[str], role: Role, kind: Class) -> dict[str, float]:
    first, second = factors(role, kind)
    best = dict.fromkeys(names, math.inf)
    with torch.no_grad(), StillWeights()():
        for name in names:
            _call(name, role, first, second)  # packs the weight, compiles the kernel
        for _ in range(3):
            for name in names:
                end = time.thread_time() + SECONDS / 3  # of the processor: other processes do not count
                while True:
                    start = time.thread_time()
                    _call(name, role, first, second)
                    best[name] = min(best[name], (now := time.thread_time()) - start)
                    if now >= end:
                        break
    size, width = SHAPES[kind]
    return {name: 2 * NUM_ROWS.get(kind, USUAL_ROWS) * size * width / taken for name, taken in best.items()}


def serve_as_child(names: Sequence[str]) -> None:
    with contextlib.suppress(ImportError, ValueError):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an illegal instruction shall leave no core file
    reports = measure_here(names)
    sys.stdout.write(json.dumps({name: report.model_dump() for name, report in reports.items()}) + "\n")


if __name__ == "__main__":
    serve_as_child(sys.argv[1:])
