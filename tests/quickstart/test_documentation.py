"""Python files are parsed and not run, compiled modules are imported, repeated texts are counted."""

import ast
from pathlib import Path

import pytest

from bertie.quickstart import documentation
from bertie.quickstart.documentation import (
    Gathered,
    Parsed,
    SourceFile,
    compiled_modules,
    entry_of,
    gather,
    imported_entries,
    paragraphs_of,
    parse_files,
    public_name,
    reexports_of,
    source_files,
    topics,
    with_public_name,
)
from bertie.quickstart.entries import Entry
from bertie.reporting.events import Event, ignore

SOURCE = '''
"""Shapes of the plane.

They have areas.
"""
import sys
open({touched!r}, "w")

if sys.platform == "win32":
    def draw():
        """Draw on a window."""
else:
    def draw():
        """Draw on a terminal."""

class Circle:
    """A round shape."""

    def area(self):
        """Return the area.

        It is never negative."""
        def inner():
            """Nobody sees this."""

    async def grow(self): "Grow for a while."

    def silent(self): ...
'''


def test_a_file_is_parsed_and_not_run(tmp_path: Path) -> None:
    file, touched = tmp_path / "shapes.py", tmp_path / "touched"
    file.write_text(SOURCE.format(touched=str(touched)))
    parsed = parse_files([SourceFile(str(file), "geometry.shapes")])
    entries = parsed.entries
    assert [(entry.name, entry.summary) for entry in entries] == [
        ("geometry.shapes", "Shapes of the plane."),
        ("geometry.shapes.draw", "Draw on a window."),
        ("geometry.shapes.draw", "Draw on a terminal."),
        ("geometry.shapes.Circle", "A round shape."),
        ("geometry.shapes.Circle.area", "Return the area."),
        ("geometry.shapes.Circle.grow", "Grow for a while."),
    ]
    assert {entry.group for entry in entries} == {"geometry"}
    assert {entry.source for entry in entries} == {"geometry.shapes"}
    assert next(entry for entry in entries if entry.kind == "class").rest == ""
    assert next(entry for entry in entries if entry.name.endswith("area")).rest == "It is never negative."
    assert parsed.num_unreadable == 0
    assert not touched.exists()


def test_a_file_that_is_no_python_is_counted(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text('"""Old."""\nprint "x"\n')
    (tmp_path / "odd.py").write_bytes(b'"""\xff\xfe"""\n')
    files = [SourceFile(str(tmp_path / name), name) for name in ("old.py", "odd.py", "missing.py")]
    assert parse_files(files) == Parsed(num_unreadable=3)


@pytest.mark.parametrize(
    ("doc", "paragraphs"),
    [
        ("Sum.\n\n    Of ``all``\n    numbers.", ["Sum.", "Of all numbers."]),
        ("matmul(input, other, *, p=0.5) -> Tensor\n\nMatrix product.", ["Matrix product."]),
        ("r = reader(lines [, dialect='excel'])\n    for row in r:\n        process(row)\n\nRows.", ["Rows."]),
        ("print(value)", ["print(value)"]),
        ("See :class:`~torch.Tensor` and :func:`add <torch.add>`.", ["See torch.Tensor and add."]),
        ("Title\n=====\n\n.. note::\n\n**Bold** text", ["Title", "Bold text"]),
        ("", []),
    ],
)
def test_a_docstring_becomes_paragraphs(doc: str, paragraphs: list[str]) -> None:
    assert paragraphs_of(doc) == paragraphs


def test_what_says_nothing_is_no_entry() -> None:
    assert entry_of("a.b", "a", "a", "function", None) is None
    assert entry_of("a.b", "a", "a", "function", " \n --- \n") is None


def test_a_text_is_there_once() -> None:
    def entry(name: str, summary: str) -> Entry:
        return Entry(name, "a", "a", "function", summary, "")

    gathered = Gathered()
    gathered.add([entry("a.b", "One."), entry("a.b", "Other."), entry("a.c", "One."), entry("a.d", "Two.")])
    assert [one.name for one in gathered.entries] == ["a.b", "a.d"]
    assert gathered.counts == {"with a name seen before": 1, "with a text seen before": 1}
    assert gathered.num_groups == 1


def test_of_two_names_of_a_text_the_public_one_stays() -> None:
    private = Entry("a._core.dot", "a", "a._core", "function", "Dot product.", "")
    gathered = Gathered()
    gathered.add([private, Entry("a.dot", "a", "a", "function", "Dot product.", "")])
    (kept,) = gathered.entries
    assert (kept.name, kept.source) == ("a.dot", "a._core"), "it stays among those that it was written with"
    gathered.add([Entry("a.inner", "a", "a", "function", "Dot product.", ""), Entry("a.dot", "a", "a", "", "X.", "")])
    assert [one.name for one in gathered.entries] == ["a.dot"]


def test_what_a_package_shows_of_a_private_module_has_its_public_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"pack/__init__.py": "from ._inner import Shape\n", "pack/_inner.py": 'class Shape:\n    "A shape."\n'}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(documentation, "compiled_modules", list)
    modules = {"pack/__init__.py": "pack", "pack/_inner.py": "pack._inner"}
    found = gather([SourceFile(str(tmp_path / path), module) for path, module in modules.items()], ignore)
    assert "pack.Shape" in {entry.name for entry in found.entries}


def test_compiled_modules_are_asked_under_their_public_names() -> None:
    assert public_name("_csv") == "csv"
    assert public_name("_nobody_knows_this") == "_nobody_knows_this"
    names = compiled_modules()
    assert {"math", "csv", "itertools", "os", "time", "torch"} <= set(names)
    assert not [name for name in names if name.startswith("_")]
    entries = {entry.name: entry for name in ("csv", "math", "os") for entry in imported_entries(name)}
    assert "square root" in entries["math.sqrt"].summary
    assert {"csv.reader", "os.listdir"} <= set(entries)
    assert not {"csv.StringIO", "os.sys"} & set(entries), "what a module took from another is the other's"
    assert {entry.group for entry in entries.values()} == {"csv", "math", "os"}
    assert list(imported_entries("a_module_that_is_nowhere")) == []


def test_the_language_has_topics() -> None:
    found = {entry.name: entry for entry in topics()}
    assert len(found) > 50
    assert "assert" in found["python.assert"].text


def test_files_are_those_of_the_library_and_the_packages_without_tests_and_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "lib/json/__init__.py",
        "lib/json/tests/test_a.py",
        "lib/test/big.py",
        "lib/stranger.py",
        "site/single.py",
        "site/pack/__init__.py",
        "site/pack/deep/part.py",
        "site/pack/_vendor/other.py",
        "site/pack/test_pack.py",
        "site/pack/data-1/not_python.py",
        "site/pack-1.0.dist-info/x.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    roots = {"stdlib": "lib", "purelib": "site", "platlib": "site"}
    monkeypatch.setattr(documentation.sysconfig, "get_path", lambda name: str(tmp_path / roots[name]))
    assert [file.module for file in source_files()] == ["json", "pack", "pack.deep.part", "single"]


def test_everything_is_gathered_the_parsed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documentation, "compiled_modules", lambda: ["math"])
    (tmp_path / "math.py").write_text('def sqrt(x):\n    "Ours."\n')
    events: list[Event] = []
    found = gather([SourceFile(str(tmp_path / "math.py"), "math")], events.append)
    named = {entry.name: entry.summary for entry in found.entries}
    assert named["math.sqrt"] == "Ours."
    assert "math.sin" in named
    assert any(entry.kind == "topic" for entry in found.entries)
    assert [(event.data["done"], event.data["total"]) for event in events] == [(1, 1)]


PACKAGE = """
from ._kmeans import KMeans, k_means as cluster, _hidden
from .tree import Tree
from ._all import *
from other._part import Thing
from pack._absolute import There
from .._above import Above
from . import _module
"""


def test_names_that_a_package_has_from_its_private_modules() -> None:
    assert reexports_of(ast.parse(PACKAGE), "pack.part") == {
        "pack.part._kmeans.KMeans": "pack.part.KMeans",
        "pack.part._kmeans.k_means": "pack.part.cluster",
        "pack.part._all.*": "pack.part",
        "pack._absolute.There": "pack.part.There",
        "pack._above.Above": "pack.part.Above",
    }
    assert reexports_of(ast.parse(PACKAGE), "pack._part") == {}, "a private package re-exports nothing"


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("pack._a.Shape", "pack._a", "pack.Shape"),
        ("pack._a.Shape.area", "pack._a", "pack.Shape.area"),
        ("pack._a.Shape._area", "pack._a", "pack._a.Shape._area"),
        ("pack._a.other", "pack._a", "pack._a.other"),
        ("pack._b.any", "pack._b", "pack.part.any"),
        ("pack._a", "pack._a", "pack._a"),
        ("pack.open.Shape", "pack.open", "pack.open.Shape"),
    ],
)
def test_an_entry_has_its_public_name(name: str, source: str, expected: str) -> None:
    reexports = {"pack._a.Shape": "pack.Shape", "pack._b.*": "pack.part", "pack.open.Shape": "nowhere"}
    entry = Entry(name, "pack", source, "function", "Text.", "")
    assert with_public_name(entry, reexports).name == expected
    assert with_public_name(entry, reexports).source == source
