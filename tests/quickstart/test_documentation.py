"""What is parsed is not run, what is compiled is asked, what repeats is counted."""

from pathlib import Path

import pytest

from bertie.quickstart import documentation
from bertie.quickstart.documentation import (
    Gathered,
    Parsed,
    SourceFile,
    asked,
    compiled_modules,
    entry_of,
    gather,
    paragraphs_of,
    parse_files,
    public_name,
    source_files,
    topics,
)
from bertie.quickstart.entry import Entry

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
    assert gathered.counts == {"under a name that was there": 1, "with a text that was there": 1}
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
    found = gather([SourceFile(str(tmp_path / path), module) for path, module in modules.items()], lambda count: None)
    assert "pack.Shape" in {entry.name for entry in found.entries}


def test_compiled_modules_are_asked_under_their_public_names() -> None:
    assert public_name("_csv") == "csv"
    assert public_name("_nobody_knows_this") == "_nobody_knows_this"
    names = compiled_modules()
    assert {"math", "csv", "itertools", "os", "time", "torch"} <= set(names)
    assert not [name for name in names if name.startswith("_")]
    entries = {entry.name: entry for name in ("csv", "math", "os") for entry in asked(name)}
    assert "square root" in entries["math.sqrt"].summary
    assert {"csv.reader", "os.listdir"} <= set(entries)
    assert not {"csv.StringIO", "os.sys"} & set(entries), "what a module took from another is the other's"
    assert {entry.group for entry in entries.values()} == {"csv", "math", "os"}
    assert list(asked("a_module_that_is_nowhere")) == []


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
    counted: list[int] = []
    found = gather([SourceFile(str(tmp_path / "math.py"), "math")], counted.append)
    named = {entry.name: entry.summary for entry in found.entries}
    assert named["math.sqrt"] == "Ours."
    assert "math.sin" in named
    assert any(entry.kind == "topic" for entry in found.entries)
    assert counted == [1]
