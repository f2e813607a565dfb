"""The documentation that every machine has: this Python and the packages installed for it enter, entries leave.

Files of Python are parsed, never run. What is compiled has no source: modules of the standard library, and a few that
bertie needs anyway, are imported and asked. A text that was there before, under another name, is left out and counted;
of two names the public one stays.
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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from bertie.data.build.pool import begin_worker
from bertie.quickstart.entry import Entry, split_summary
from bertie.quickstart.reexports import reexports_of, shown

COMPILED = ("numpy", "torch")  # packages that bertie imports, whose functions are mostly compiled
UNTOLD = {"test", "idlelib", "lib2to3", "turtledemo", "pydoc_data"}  # of the standard library: tests, programs, tables
TESTS = re.compile(r"(.*_)?tests?|test_.*|conftest|testing")
COPIES = {"_vendor", "_vendored", "vendor", "vendored", "externals", "third_party"}  # packages inside packages
TOPICS = "python"  # the group of pydoc's topics: the language itself

_ROLE = re.compile(r":[a-z][a-z:+-]*:`[~!]?([^`<]*?)(?: ?<[^`>]*>)?`")  # :func:`~torch.add`
_QUOTED = re.compile(r"(`+|\*\*)([^`*]+)(`+|\*\*)_*")
_SIGNATURE = re.compile(r"(?:[\w, ]+ = )?[\w.]+ ?\(.*(?:[)\]]|\) -+> .*)", re.DOTALL)
_DIRECTIVE = re.compile(r"^\.\. .*$|^[-=~^*#]{3,}$", re.MULTILINE)  # and lines under headings


@dataclass
class Gathered:
    """Entries, and what was left out."""

    entries: list[Entry] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _names: set[str] = field(default_factory=set)
    _places: dict[str, int] = field(default_factory=dict)  # of texts, among the entries

    def add(self, found: Iterable[Entry]) -> None:
        for entry in found:
            if entry.name in self._names:
                self.counts["under a name that was there"] += 1
                continue
            place = self._places.setdefault(entry.text, len(self.entries))
            if place == len(self.entries):
                self.entries.append(entry)
                self._names.add(entry.name)
                continue
            self.counts["with a text that was there"] += 1
            known = self.entries[place]
            if entry.is_public and not known.is_public:
                self.entries[place] = replace(known, name=entry.name, group=entry.group)
                self._names.add(entry.name)

    @property
    def num_groups(self) -> int:
        return len({entry.group for entry in self.entries})


@dataclass(frozen=True)
class SourceFile:
    path: str
    module: str  # dotted


def gather(files: list[SourceFile], advance: Callable[[int], None]) -> Gathered:
    """All entries, those of the standard library first. `advance` is told of files that were read."""
    gathered = Gathered()
    gathered.add(topics())
    reexports: dict[str, str] = {}  # packages come before their modules
    for parsed in _parsed(files, advance):
        reexports |= parsed.reexports
        gathered.add(shown(entry, reexports) for entry in parsed.entries)
        gathered.counts["files that are no Python of this version"] += parsed.num_unreadable
    gathered.add(entry for name in compiled_modules() for entry in asked(name))
    return gathered


def topics() -> Iterator[Entry]:
    """What `help("topics")` of Python's own prompt tells of the language."""
    try:
        from pydoc_data.topics import topics as known
    except ImportError:  # some systems have the documentation in a package of its own
        return
    for name, text in sorted(known.items()):
        if entry := entry_of(f"{TOPICS}.{name}", TOPICS, TOPICS, "topic", text):
            yield entry


def source_files() -> list[SourceFile]:
    """Of the standard library, then of the packages, each in the order of their names."""
    library = Path(sysconfig.get_path("stdlib"))
    roots = dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))
    known = sys.stdlib_module_names - UNTOLD
    files = [file for name in sorted(known) for file in _files_of(library, name)]
    for root in roots:
        names = sorted(
            {path.stem for path in root.glob("*") if path.suffix == ".py" or (path / "__init__.py").exists()}
        )
        files += [file for name in names for file in _files_of(root, name)]
    return files


def _files_of(root: Path, name: str) -> Iterator[SourceFile]:
    """Of one package or module at the top."""
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


BATCH = 64  # files that a process takes at once


@dataclass
class Parsed:
    entries: list[Entry] = field(default_factory=list)
    reexports: dict[str, str] = field(default_factory=dict)
    num_unreadable: int = 0  # files


def _parsed(files: list[SourceFile], advance: Callable[[int], None]) -> Iterator[Parsed]:
    batches = [files[start : start + BATCH] for start in range(0, len(files), BATCH)]
    if len(batches) < 3 or (os.cpu_count() or 1) < 2:
        for batch in batches:
            yield parse_files(batch)
            advance(len(batch))
        return
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"), begin_worker) as pool:
        for batch, found in zip(batches, pool.map(parse_files, batches), strict=True):
            yield found
            advance(len(batch))


def parse_files(files: Iterable[SourceFile]) -> Parsed:
    found = Parsed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what others wrote
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
    shown = group + name[len(module.partition(".")[0]) :]
    if entry := entry_of(shown, group, module, "module" if isinstance(node, ast.Module) else "class", _doc(node)):
        yield entry
    for child in _definitions(node.body):
        inner = f"{name}.{child.name}"
        if isinstance(child, ast.ClassDef):
            yield from _documented(child, inner, module)
        elif entry := entry_of(f"{shown}.{child.name}", group, module, "function", _doc(child)):
            yield entry


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _definitions(body: Iterable[ast.stmt]) -> Iterator[Definition]:
    """Also those that stand under a condition."""
    for node in body:
        if isinstance(node, Definition):
            yield node
        elif isinstance(node, ast.If | ast.Try):
            handlers = [handler.body for handler in node.handlers] if isinstance(node, ast.Try) else []
            for part in (node.body, *handlers, node.orelse):
                yield from _definitions(part)


def _doc(node: ast.Module | Definition) -> str | None:
    return ast.get_docstring(node, clean=False)


def compiled_modules() -> list[str]:
    """Modules of the standard library without source, under their public names; and packages that bertie needs."""
    names = set()
    for name in sys.stdlib_module_names - UNTOLD:
        spec = find_spec(name) if public_name(name)[0] != "_" else None
        origin = (spec and spec.origin) or ""
        if origin == "built-in" or origin.endswith(tuple(EXTENSION_SUFFIXES)):
            names.add(public_name(name))
    return [*sorted({*names, "os"}), *COMPILED]  # os shows what posix or nt have


def asked(module: str) -> Iterator[Entry]:
    """Everything public that the module itself, or its private half, has."""
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
    """A private module speaks for the public one of its name: _csv for csv, _pytest for pytest."""
    bare = name.lstrip("_")
    if bare == name or not bare:
        return name
    known = bare in sys.stdlib_module_names or any((Path(root) / bare).exists() for root in _PACKAGE_ROOTS)
    return bare if known else name


_PACKAGE_ROOTS = tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))


def entry_of(name: str, group: str, source: str, kind: str, doc: str | None) -> Entry | None:
    """None where nothing is said."""
    paragraphs = paragraphs_of(doc or "")
    summary, rest = split_summary(paragraphs)
    return Entry(name, group, source, kind, summary, rest) if summary else None


def paragraphs_of(doc: str) -> list[str]:
    """Each as one line, without the marks of reStructuredText. A signature at the top is no summary: it goes."""
    plain = _DIRECTIVE.sub("", _QUOTED.sub(r"\2", _ROLE.sub(r"\1", inspect.cleandoc(doc))))
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", plain)]
    paragraphs = [part for part in paragraphs if any(sign.isalnum() for sign in part)]
    if len(paragraphs) > 1 and _SIGNATURE.fullmatch(paragraphs[0]):
        del paragraphs[0]
    return paragraphs
