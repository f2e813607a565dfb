"""Turns the documentation that every machine has, of this Python and its installed packages, into entries.

Python files are parsed, never run. Compiled modules have no source: those of the standard library, and a few that
bertie needs anyway, are imported. A text that appears under two names is kept once, under the public one:
`sklearn/cluster/__init__.py` has `from ._kmeans import KMeans`, so `sklearn.cluster._kmeans.KMeans` is shown as
`sklearn.cluster.KMeans`.
"""

import ast
import importlib
import inspect
import multiprocessing
import os
import re
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from bertie.data.build.pool import begin_worker
from bertie.quickstart.entries import Entry, is_public, split_summary
from bertie.reporting.events import OnEvent, progress

COMPILED = ("numpy", "torch")  # packages that bertie imports, whose functions are mostly compiled
NOT_READ = {"test", "idlelib", "lib2to3", "turtledemo", "pydoc_data"}  # tests, programs, tables
TESTS = re.compile(r"(.*_)?tests?|test_.*|conftest|testing")
COPIES = {"_vendor", "_vendored", "vendor", "vendored", "externals", "third_party"}  # packages inside packages
TOPICS = "python"  # the group of pydoc's topics: the language itself

_ROLE = re.compile(r":[a-z][a-z:+-]*:`[~!]?([^`<]*?)(?: ?<[^`>]*>)?`")  # :func:`~torch.add`
_QUOTED = re.compile(r"(`+|\*\*)([^`*]+)(`+|\*\*)_*")
_SIGNATURE = re.compile(r"(?:[\w, ]+ = )?[\w.]+ ?\(.*(?:[)\]]|\) -+> .*)", re.DOTALL)
_DIRECTIVE = re.compile(r"^\.\. .*$|^[-=~^*#]{3,}$", re.MULTILINE)  # and lines under headings


@dataclass
class Gathered:
    """Entries, and how many were left out, by reason."""

    entries: list[Entry] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _names: set[str] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)  # text -> number of its entry

    def add(self, found: Iterable[Entry]) -> None:
        for entry in found:
            if entry.name in self._names:
                self.counts["with a name seen before"] += 1
                continue
            number = self._numbers.setdefault(entry.text, len(self.entries))
            if number == len(self.entries):
                self.entries.append(entry)
                self._names.add(entry.name)
                continue
            self.counts["with a text seen before"] += 1
            known = self.entries[number]
            if entry.is_public and not known.is_public:
                self.entries[number] = replace(known, name=entry.name, group=entry.group)
                self._names.add(entry.name)

    @property
    def num_groups(self) -> int:
        return len({entry.group for entry in self.entries})


@dataclass(frozen=True)
class SourceFile:
    path: str
    module: str  # dotted


def gather(files: list[SourceFile], on_event: OnEvent) -> Gathered:
    """Returns all entries, those of the standard library first."""
    gathered = Gathered()
    gathered.add(topics())
    reexports: dict[str, str] = {}  # packages come before their modules
    for parsed in _parse_all(files, on_event):
        reexports |= parsed.reexports
        gathered.add(with_public_name(entry, reexports) for entry in parsed.entries)
        gathered.counts["files that this version of Python cannot read"] += parsed.num_unreadable
    gathered.add(entry for name in compiled_modules() for entry in imported_entries(name))
    return gathered


def topics() -> Iterator[Entry]:
    """The pages about the language itself that `help("topics")` lists."""
    try:
        from pydoc_data.topics import topics as known
    except ImportError:  # some systems have the documentation in a package of its own
        return
    for name, text in sorted(known.items()):
        if entry := entry_of(f"{TOPICS}.{name}", TOPICS, TOPICS, "topic", text):
            yield entry


def source_files() -> list[SourceFile]:
    """Files of the standard library, then of the packages, each sorted by name."""
    library = Path(sysconfig.get_path("stdlib"))
    roots = dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))
    known = sys.stdlib_module_names - NOT_READ
    files = [file for name in sorted(known) for file in _files_of(library, name)]
    for root in roots:
        names = sorted(
            {path.stem for path in root.glob("*") if path.suffix == ".py" or (path / "__init__.py").exists()}
        )
        files += [file for name in names for file in _files_of(root, name)]
    return files


def _files_of(root: Path, name: str) -> Iterator[SourceFile]:
    """Files of one top-level package or module."""
    if (single := root / f"{name}.py").is_file():
        yield SourceFile(str(single), name)
    for folder, below, names in os.walk(root / name):
        below[:] = sorted(one for one in below if one.isidentifier() and not (TESTS.fullmatch(one) or one in COPIES))
        parts = Path(folder).relative_to(root).parts
        for file in sorted(names):
            stem = file.removesuffix(".py")
            if file.endswith(".py") and stem.isidentifier() and not TESTS.fullmatch(stem):
                module = parts if stem == "__init__" else (*parts, stem)
                yield SourceFile(f"{folder}/{file}", ".".join(module))


BATCH = 64  # files that a worker process takes at once


@dataclass
class Parsed:
    entries: list[Entry] = field(default_factory=list)
    reexports: dict[str, str] = field(default_factory=dict)
    num_unreadable: int = 0  # files


def _parse_all(files: list[SourceFile], on_event: OnEvent) -> Iterator[Parsed]:
    batches = [files[start : start + BATCH] for start in range(0, len(files), BATCH)]
    num_workers = (os.cpu_count() or 1) if len(batches) > 2 else 1
    if num_workers == 1:
        results = map(parse_files, batches)
        yield from _report(results, batches, len(files), on_event)
        return
    with ProcessPoolExecutor(num_workers, multiprocessing.get_context("spawn"), begin_worker) as pool:
        yield from _report(pool.map(parse_files, batches), batches, len(files), on_event)


def _report(
    results: Iterable[Parsed], batches: Sequence[Sequence[SourceFile]], total: int, on_event: OnEvent
) -> Iterator[Parsed]:
    done = 0
    for result, batch in zip(results, batches, strict=True):
        yield result
        done += len(batch)
        on_event(progress("reading", done, total, "files"))


def parse_files(files: Iterable[SourceFile]) -> Parsed:
    found = Parsed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about code that others wrote
        for file in files:
            try:
                tree = ast.parse(Path(file.path).read_bytes())
            except (SyntaxError, ValueError, RecursionError, OSError):
                found.num_unreadable += 1
                continue
            found.entries += _documented(tree, file.module, file.module)
            if Path(file.path).name == "__init__.py":
                found.reexports |= reexports_of(tree, file.module)
    return found


def _documented(node: ast.Module | ast.ClassDef, name: str, module: str) -> Iterator[Entry]:
    group = public_name(module.partition(".")[0])
    public = group + name[len(module.partition(".")[0]) :]
    if entry := entry_of(public, group, module, "module" if isinstance(node, ast.Module) else "class", _doc(node)):
        yield entry
    for child in _definitions(node.body):
        inner = f"{name}.{child.name}"
        if isinstance(child, ast.ClassDef):
            yield from _documented(child, inner, module)
        elif entry := entry_of(f"{public}.{child.name}", group, module, "function", _doc(child)):
            yield entry


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _definitions(body: Iterable[ast.stmt]) -> Iterator[Definition]:
    """Classes and functions, including those under `if` and `try`."""
    for node in body:
        if isinstance(node, Definition):
            yield node
        elif isinstance(node, ast.If | ast.Try):
            handlers = [handler.body for handler in node.handlers] if isinstance(node, ast.Try) else []
            for part in (node.body, *handlers, node.orelse):
                yield from _definitions(part)


def _doc(node: ast.Module | Definition) -> str | None:
    return ast.get_docstring(node, clean=False)


Reexports = Mapping[str, str]  # a._b.C -> a.C; a._b.* -> a


def reexports_of(package: ast.Module, name: str) -> dict[str, str]:
    """What the `__init__.py` of a package imports from the package's own private modules."""
    found: dict[str, str] = {}
    for node in ast.walk(package) if is_public(name) else ():
        if not isinstance(node, ast.ImportFrom):
            continue
        module = _imported_module(node, name)
        if is_public(module) or module.partition(".")[0] != name.partition(".")[0]:
            continue
        for alias in node.names:
            if alias.name == "*":
                found[f"{module}.*"] = name
            elif is_public(public := alias.asname or alias.name):
                found[f"{module}.{alias.name}"] = f"{name}.{public}"
    return found


def _imported_module(node: ast.ImportFrom, package: str) -> str:
    """The absolute name: `from .._b import C` in a.c imports from a._b."""
    parts = package.split(".")
    above = parts[: len(parts) + 1 - node.level] if node.level else []
    return ".".join([*above, node.module] if node.module else above)


def with_public_name(entry: Entry, reexports: Reexports) -> Entry:
    """Renames an entry to its public name, if it has one."""
    inside = entry.name[len(entry.source) + 1 :]
    if entry.is_public or not inside or not is_public(inside):
        return entry
    first, _, rest = inside.partition(".")
    if (public := reexports.get(f"{entry.source}.{first}")) is None:
        package = reexports.get(f"{entry.source}.*")
        public = f"{package}.{first}" if package else None
    return entry if public is None else replace(entry, name=f"{public}.{rest}" if rest else public)


def compiled_modules() -> list[str]:
    """Public names of the standard library's modules without source, and of packages that bertie imports anyway."""
    names = set()
    for name in sys.stdlib_module_names - NOT_READ:
        spec = find_spec(name) if public_name(name)[0] != "_" else None
        origin = (spec and spec.origin) or ""
        if origin == "built-in" or origin.endswith(tuple(EXTENSION_SUFFIXES)):
            names.add(public_name(name))
    return [*sorted({*names, "os"}), *COMPILED]  # os re-exports what posix or nt define


def imported_entries(module: str) -> Iterator[Entry]:
    """Imports a module and returns an entry for everything public that it, or its private half, defines."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return
    own = {module, f"_{module}", os.name if module == "os" else module, None}
    if entry := entry_of(module, module, module, "module", found.__doc__):
        yield entry
    for name, member in _members(found):
        if inspect.ismodule(member) or getattr(member, "__module__", None) not in own:
            continue
        kind = "class" if isinstance(member, type) else "function"
        if kind == "function" and not callable(member):
            continue
        if entry := entry_of(f"{module}.{name}", module, module, kind, _live_doc(member)):
            yield entry
        for inner, method in _members(member) if isinstance(member, type) else ():
            if callable(method) and (
                entry := entry_of(f"{module}.{name}.{inner}", module, module, "function", _live_doc(method))
            ):
                yield entry


def _members(owner: object) -> Iterator[tuple[str, object]]:
    return ((name, member) for name, member in sorted(vars(owner).items()) if not name.startswith("_"))


def _live_doc(member: object) -> str | None:
    text = getattr(member, "__doc__", None)
    return text if isinstance(text, str) else None


def public_name(name: str) -> str:
    """Names the public module that a private one belongs to: csv for _csv, pytest for _pytest."""
    bare = name.lstrip("_")
    if bare == name or not bare:
        return name
    known = bare in sys.stdlib_module_names or any((Path(root) / bare).exists() for root in _PACKAGE_ROOTS)
    return bare if known else name


_PACKAGE_ROOTS = tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))


def entry_of(name: str, group: str, source: str, kind: str, doc: str | None) -> Entry | None:
    """None where there is no text."""
    paragraphs = paragraphs_of(doc or "")
    summary, rest = split_summary(paragraphs)
    return Entry(name, group, source, kind, summary, rest) if summary else None


def paragraphs_of(doc: str) -> list[str]:
    """Paragraphs as lines, without reStructuredText markup. A signature at the top is removed: it is no summary."""
    plain = _DIRECTIVE.sub("", _QUOTED.sub(r"\2", _ROLE.sub(r"\1", inspect.cleandoc(doc))))
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", plain)]
    paragraphs = [part for part in paragraphs if any(sign.isalnum() for sign in part)]
    if len(paragraphs) > 1 and _SIGNATURE.fullmatch(paragraphs[0]):
        del paragraphs[0]
    return paragraphs
