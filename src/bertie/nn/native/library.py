"""Turns C source into a loaded library: compiled once on each machine, checked in a child process, kept in the cache.

There is none wherever anything is missing: no compiler, no writable cache, wrong answers, a crash. There is no message
then: the torch path does the same work. `BERTIE_NATIVE=0` switches all kernels off.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertie.machine import cache_file

FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=gnu11")
TIME_LIMIT = 60


Types = Mapping[str, Sequence[Any]]  # the argument types of each function


def lazy_library(name: str, check: str, types: Types) -> Callable[[], ctypes.CDLL | None]:
    """A function that returns the library of a C file in this folder, compiled and loaded when it is first called.
    `check` is Python code for a child process, which gets the library's path and must end with exit code 0."""

    @cache
    def load() -> ctypes.CDLL | None:
        library = load_library(Path(__file__).with_name(name), check)
        for function, arguments in types.items() if library is not None else ():
            getattr(library, function).argtypes = arguments
        return library

    return load


def load_library(source: Path, check: str) -> ctypes.CDLL | None:
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc") or shutil.which("clang")
    if os.environ.get("BERTIE_NATIVE") == "0" or compiler is None or sys.platform != "linux":
        return None
    try:
        library = cache_file().parent / "native" / f"{source.stem}-{_key(source, compiler, check)}.so"
        refused = library.with_suffix(".refused")
        if refused.exists():
            return None
        if not library.exists() and not _compile(compiler, source, library, check, refused):
            return None
        return ctypes.CDLL(str(library))
    except (OSError, subprocess.SubprocessError):
        return None


def _compile(compiler: str, source: Path, library: Path, check: str, refused: Path) -> bool:
    """A library that compiles but fails its check is not tried again; one that does not compile may be a full disk."""
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        built = Path(folder) / library.name
        command = [compiler, *FLAGS, "-o", str(built), str(source), "-lm"]
        if subprocess.run(command, capture_output=True, timeout=TIME_LIMIT, check=False).returncode:
            return False
        checked = [sys.executable, "-c", check, str(built)]
        if subprocess.run(checked, capture_output=True, timeout=TIME_LIMIT, check=False).returncode:
            refused.touch()
            return False
        built.replace(library)
    return True


def _key(source: Path, compiler: str, check: str) -> str:
    """Another source, header, compiler or processor needs another library; many machines may share a home folder."""
    version = subprocess.run([compiler, "--version"], capture_output=True, timeout=TIME_LIMIT, check=True).stdout
    processor = platform.machine().encode()
    if (cpuinfo := Path("/proc/cpuinfo")).exists():
        lines = cpuinfo.read_text("utf-8", "replace").splitlines()
        wanted = ("model name", "flags", "Features")
        processor += "\n".join(sorted(set(line for line in lines if line.startswith(wanted)))).encode()  # noqa: C401
    total = hashlib.sha256()
    headers = [header.read_bytes() for header in sorted(source.parent.glob("*.h"))]
    for part in (source.read_bytes(), *headers, version, processor, " ".join(FLAGS).encode(), check.encode()):
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:16]


def is_plain(*tensors: Tensor) -> bool:
    """Whether the kernels take them: float32 on the CPU, without autocast, which would make them another type."""
    numbers = all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors)
    return numbers and not torch.is_autocast_enabled("cpu")
