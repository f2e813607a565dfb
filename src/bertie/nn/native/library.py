"""Turns C source into a loaded library: compiled once on each machine, checked in a child process, kept in the cache.

There is none wherever anything is missing: no compiler, no writable cache, wrong answers, a crash. There is no message
then: the torch path does the same work. `BERTIE_NATIVE=0` switches all kernels off.

A library ends with the digest of its bytes, which the loader of the system ignores: one that was cut short, which would
kill the process, or changed is compiled again. What other users could have written is never loaded.
"""

import atexit
import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bertie.disk import atomic_file, is_private
from bertie.machine import cache_file

FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=gnu11")
TIME_LIMIT = 60
DIGEST_SIZE = hashlib.sha256().digest_size


Types = Mapping[str, Sequence[Any]]  # the argument types of each function


def lazy_library(name: str, check: str, types: Types) -> Callable[[], ctypes.CDLL | None]:
    """A function that returns the library of a C file in this folder, compiled and loaded when it is first called.
    `check` is Python code for a child process, which gets the library's path and must end with exit code 0."""

    @cache
    def load() -> ctypes.CDLL | None:
        library = load_library(Path(__file__).with_name(name), check)
        try:
            for function, arguments in types.items() if library is not None else ():
                getattr(library, function).argtypes = arguments
        except AttributeError as error:
            warnings.warn(f"the library of {name} lacks a function ({error}): torch does its work", stacklevel=3)
            return None
        return library

    return load


def load_library(source: Path, check: str) -> ctypes.CDLL | None:
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc") or shutil.which("clang")
    if os.environ.get("BERTIE_NATIVE") == "0" or compiler is None or sys.platform != "linux":
        return None
    try:
        library = _folder(cache_file().parent) / f"{source.stem}-{_key(source, compiler, check)}.so"
        refused = library.with_suffix(".refused")
        if refused.exists():
            return None
        if not _is_intact(library) and not _compile(compiler, source, library, check, refused):
            return None
        return ctypes.CDLL(str(library))
    except (OSError, subprocess.SubprocessError):
        return None


def _folder(cache_folder: Path) -> Path:
    """Where libraries are kept: a folder that only this user can write to. Where others could, what is there is
    removed; where the folder is another user's, libraries are compiled for this process alone."""
    folder = cache_folder / "native"
    for one in (cache_folder, folder):
        one.mkdir(mode=0o700, parents=True, exist_ok=True)
    if all(map(is_private, (cache_folder, folder))):
        return folder
    if all(one.stat().st_uid == os.geteuid() for one in (cache_folder, folder)):
        for one in (cache_folder, folder):
            one.chmod(one.stat().st_mode & ~0o022)
        for old in folder.iterdir():
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        _warn_once(f"{folder}: other users could write here, so the kernels kept there are compiled again")
        return folder
    _warn_once(f"{folder}: belongs to another user, so kernels are compiled for this process alone; remove it")
    return _own_folder()


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=6)


@cache
def _own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bertie-native-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_intact(library: Path) -> bool:
    """Whether it is there, this user's, and has the bytes that were compiled."""
    if not library.is_file() or not is_private(library):
        return False
    content, digest = (whole := library.read_bytes())[:-DIGEST_SIZE], whole[-DIGEST_SIZE:]
    return hashlib.sha256(content).digest() == digest


def _compile(compiler: str, source: Path, library: Path, check: str, refused: Path) -> bool:
    """A library that compiles but fails its check is not tried again; one that does not compile may be a full disk."""
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        built = Path(folder) / library.name
        command = [compiler, *FLAGS, "-o", str(built), str(source), "-lm"]
        if subprocess.run(command, capture_output=True, timeout=TIME_LIMIT, check=False).returncode:
            return False
        checked = [sys.executable, "-c", check, str(built)]
        if subprocess.run(checked, capture_output=True, timeout=TIME_LIMIT, check=False).returncode:
            refused.touch()
            return False
        content = built.read_bytes()
        with atomic_file(library) as file:
            os.fchmod(file.fileno(), 0o700)
            file.write(content + hashlib.sha256(content).digest())
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
