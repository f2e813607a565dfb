"""Public names of what private modules hold: files of packages enter, and the names under which people import leave.

`sklearn/cluster/__init__.py` says `from ._kmeans import KMeans`: who documents `sklearn.cluster._kmeans.KMeans` then
documents `sklearn.cluster.KMeans`.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bertie.quickstart.entry import Entry, is_public

ALL = "*"
Reexports = Mapping[str, str]  # a._b.C -> a.C; a._b.* -> a


def reexports_of(package: ast.Module, name: str) -> dict[str, str]:
    """What a package, told by its `__init__.py`, has from private modules of its own."""
    found: dict[str, str] = {}
    for node in ast.walk(package) if is_public(name) else ():
        if isinstance(node, ast.ImportFrom) and (module := imported_from(node, name)) and not is_public(module):
            found |= {f"{module}.{one}": public for one, public in shown_names(node, name)}
    return found


def imported_from(node: ast.ImportFrom, package: str) -> str | None:
    """None where it is not of the same package."""
    if not node.level:
        module = node.module or ""
        return module if module.partition(".")[0] == package.partition(".")[0] else None
    above = package.split(".")[: len(package.split(".")) + 1 - node.level]
    return ".".join([*above, node.module] if node.module else above)


def shown_names(node: ast.ImportFrom, package: str) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        shown = alias.asname or alias.name
        if alias.name == ALL:
            yield ALL, package
        elif is_public(shown):
            yield alias.name, f"{package}.{shown}"


def shown(entry: Entry, reexports: Reexports) -> Entry:
    """Under its public name, if it has one."""
    inside = entry.name[len(entry.source) + 1 :]
    if entry.is_public or not inside or not is_public(inside):
        return entry
    first, _, rest = inside.partition(".")
    if (public := reexports.get(f"{entry.source}.{first}")) is None:
        package = reexports.get(f"{entry.source}.{ALL}")
        public = f"{package}.{first}" if package else None
    return entry if public is None else replace(entry, name=f"{public}.{rest}" if rest else public)
