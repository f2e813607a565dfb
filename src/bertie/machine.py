"""Finds what this machine has and how fast each precision runs.

Some processors advertise instructions that their virtual machine does not enable: a bfloat16 matrix product then kills
the process with an illegal instruction. So every precision is measured in a child process with a time limit, once per
machine, and the answer is kept in a file. Run as a script, this file is that child.
"""

import contextlib
import hashlib
import json
import math
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

PRECISIONS = ("float32", "bfloat16", "float16", "int8")

# A feed-forward layer on a batch of tokens, the commonest product of an encoder: [tokens, width] x [width, inner].
NUM_TOKENS, WIDTH, INNER = 512, 768, 3072
# One product rounds each input, so its error grows with the root of the width; these bounds catch nonsense, not noise.
LARGEST_ERROR = {"float32": 1e-4, "bfloat16": 3e-2, "float16": 3e-2, "int8": 1e-1}
SECONDS_PER_MEASUREMENT = 0.5

# The newest instructions below AMX, the ones that virtual machines fail to enable.
SAFE_INSTRUCTIONS = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}

# What decides the speed of a matrix product, under the names of /proc/cpuinfo (x86, then ARM).
INSTRUCTION_SETS = (
    *("avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16"),
    *("asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "i8mm"),
)

CHILD = (sys.executable, "-P", __file__)
MOST_CACHED = 8  # thread counts and torch versions of one machine


class Precision(BaseModel):
    model_config = ConfigDict(frozen=True)

    runs: bool
    speed: float | None = Field(gt=0, allow_inf_nan=False)  # TFLOP/s, for integers TOP/s
    note: str = ""


class Machine(BaseModel):
    model_config = ConfigDict(frozen=True)

    cpu: str
    instruction_sets: tuple[str, ...]
    cores: int
    threads: int  # that torch uses
    memory: int  # bytes
    torch: str
    precisions: dict[str, Precision]

    def fastest(self, exact: bool = True) -> str:
        """The precision to compute in; `exact` allows only those that lose nothing against float32."""
        measured = {name: found.speed for name, found in self.precisions.items() if found.runs and found.speed}
        if exact or not measured:
            return "float32"
        return max(measured, key=lambda name: measured[name])


def probe(
    refresh: bool = False,
    *,
    child: Sequence[str] = CHILD,
    time_limit: float = 60.0,
    cache: Path | None = None,
) -> Machine:
    """This machine, measured at the first call and remembered. `child` gets a precision and a thread count."""
    flags, threads = cpu_flags(), torch.get_num_threads()
    file, key = cache or cache_file(), cache_key()
    known = read_cache(file)
    precisions = None if refresh else known.get(key)
    if precisions is None:
        precisions = {name: measure_apart(name, threads, child, time_limit) for name in PRECISIONS}
        # Where nothing ran, the children could not start: that is a passing trouble, not a property of the machine.
        if any(found.runs for found in precisions.values()):
            write_cache(file, {**known, key: precisions})
    return Machine(
        cpu=cpu_name(),
        instruction_sets=tuple(name for name in INSTRUCTION_SETS if name in flags),
        cores=num_cores(),
        threads=threads,
        memory=memory_bytes(),
        torch=torch.__version__,
        precisions=precisions,
    )


# --- the cache


def cache_key() -> str:
    """What decides the speeds."""
    facts = [cpu_name(), sorted(cpu_flags()), torch.__version__, torch.get_num_threads()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def cache_file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bertie" / "machine.json"


def read_cache(file: Path) -> dict[str, dict[str, Precision]]:
    """What was measured before; nothing when the file is missing, unreadable, broken or open to other users."""
    from bertie.disk import is_private  # as in `write_cache`

    try:
        if not file.is_file() or not is_private(file):
            return {}
        entries = json.loads(file.read_text(encoding="utf-8"))
        return {
            key: {name: Precision.model_validate(found[name]) for name in PRECISIONS} for key, found in entries.items()
        }
    except (OSError, ValueError, ValidationError, AttributeError, KeyError, TypeError, RecursionError):
        return {}


def write_cache(file: Path, entries: dict[str, dict[str, Precision]]) -> None:
    """Whole or not at all. A folder that cannot be written costs a new measurement next time, no more."""
    from bertie.disk import write_file  # not above: the child process runs this file alone, perhaps without bertie

    newest = list(entries.items())[-MOST_CACHED:]
    text = json.dumps({key: {name: found.model_dump() for name, found in entry.items()} for key, entry in newest})
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(file, text.encode())
        file.chmod(0o600)  # one that other users may write is not read


# --- measuring, seen from the parent


def measure_apart(precision: str, threads: int, child: Sequence[str] = CHILD, time_limit: float = 60.0) -> Precision:
    """Measure in a child process; whatever happens to the child, an answer comes back."""
    found = run_child(precision, threads, child, time_limit, {})
    if "SIGILL" not in found.note:
        return found
    again = run_child(precision, threads, child, time_limit, SAFE_INSTRUCTIONS)
    if not again.runs:
        return found
    setting = " ".join(f"{name}={value}" for name, value in SAFE_INSTRUCTIONS.items())
    return Precision(runs=False, speed=None, note=f"{found.note}; runs at {again.speed:.3g} T/s with {setting}")


def run_child(
    precision: str, threads: int, child: Sequence[str], time_limit: float, environment: dict[str, str]
) -> Precision:
    command = [*child, precision, str(threads)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=time_limit,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Precision(runs=False, speed=None, note=f"gave no answer within {time_limit:g} s")
    except OSError as error:
        return Precision(runs=False, speed=None, note=f"could not be measured ({error.strerror})")
    if done.returncode < 0:
        return Precision(runs=False, speed=None, note=f"crashes ({signal_name(-done.returncode)})")
    try:
        # The last line: libraries may have printed before it.
        return Precision.model_validate_json(done.stdout.splitlines()[-1])
    except (IndexError, ValidationError):
        lines = done.stderr.strip().splitlines() or ["no output"]
        return Precision(runs=False, speed=None, note=f"fails (exit code {done.returncode}: {lines[-1][:200]})")


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# --- measuring, inside the child


def product(precision: str, inputs: torch.Tensor, weight: torch.Tensor) -> Callable[[], torch.Tensor]:
    """The linear layer `inputs @ weight.T` in a precision, with everything prepared that a model prepares once."""
    if precision == "int8":
        # Weights per row, activations per batch and seven bits wide: without VNNI eight bits would overflow.
        scales = weight.abs().amax(dim=1) / 127
        zeros = torch.zeros(len(weight), dtype=torch.long)
        quantised = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(quantised, None)
        return lambda: torch.ops.quantized.linear_dynamic(inputs, packed, True)
    kind = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[precision]
    cast_inputs, cast_weight = inputs.to(kind), weight.to(kind)
    return lambda: torch.nn.functional.linear(cast_inputs, cast_weight)


def measure_here(precision: str) -> Precision:
    """Run the product in this process, which may die of it, and check that its numbers are right."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(NUM_TOKENS, WIDTH, generator=generator)
    weight = torch.randn(INNER, WIDTH, generator=generator) / math.sqrt(WIDTH)
    with torch.inference_mode():
        multiply = product(precision, inputs, weight)
        result = multiply().float()
        # A few rows in double precision are enough to see nonsense.
        expected = inputs[:8].double() @ weight.double().T
        error = ((result[:8].double() - expected).norm() / expected.norm()).item()
        if not error <= LARGEST_ERROR[precision]:
            return Precision(runs=False, speed=None, note=f"gives wrong numbers (relative error {error:.1g})")
        best, spent = math.inf, 0.0
        while spent < SECONDS_PER_MEASUREMENT:
            start = time.perf_counter()
            multiply()
            taken = time.perf_counter() - start
            best, spent = min(best, taken), spent + taken
    return Precision(runs=True, speed=2 * NUM_TOKENS * WIDTH * INNER / best / 1e12)


def serve_as_child(precision: str, threads: int) -> None:
    with contextlib.suppress(ImportError, ValueError):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an illegal instruction shall leave no core file
    torch.set_num_threads(threads)
    sys.stdout.write(measure_here(precision).model_dump_json() + "\n")


# --- the machine


def cpu_info() -> dict[str, str]:
    """The first processor of /proc/cpuinfo; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def cpu_name() -> str:
    return cpu_info().get("model name") or platform.processor() or platform.machine()


def cpu_flags() -> set[str]:
    info = cpu_info()
    return set((info.get("flags") or info.get("Features") or "").split())


def num_cores() -> int:
    """The cores this process may use, which a container or `taskset` can make fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_memory() -> int:
    """The most memory that this process has ever held, in bytes; 0 where the system does not tell."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        # Not `ru_maxrss`: that begins with the memory of whoever started the process.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    with contextlib.suppress(ImportError):
        import resource  # not on Windows

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return 0


def memory_bytes() -> int:
    """The memory there is, or what the container allows of it; 0 where the system does not tell."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total


if __name__ == "__main__":
    serve_as_child(sys.argv[1], int(sys.argv[2]))
