"""Only the command line names flags: below it, options have their names in Python, and `cli` turns them into flags."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "bertie"
WITH_FLAGS = ("cli", "quickstart")
FLAG = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"bertie [a-z]+ [^;]*--[a-z]")


def flags_named(files: dict[str, str]) -> list[str]:
    """Texts outside the command line that name a flag, but for docstrings, whole commands, arguments of processes and
    what a job says of its flags."""
    complaints = []
    for path, source in files.items():
        if Path(path).parts[0] in WITH_FLAGS:
            continue
        nodes = list(ast.walk(ast.parse(source, path)))
        passed = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        passed |= {id(node.value) for node in nodes if isinstance(node, ast.keyword) and node.arg == "flag"}
        passed |= {id(item) for node in nodes if isinstance(node, ast.List) for item in node.elts}
        for node in nodes:
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in passed:
                continue
            if FLAG.search(node.value) and not COMMAND.search(node.value):
                complaints.append(f"{path}:{node.lineno}: {node.value}")
    return complaints


def test_only_the_command_line_names_flags() -> None:
    files = {str(file.relative_to(PACKAGE)): file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")}
    assert flags_named(files) == []


def test_a_flag_named_below_is_seen() -> None:
    files = {
        "text/a.py": "hint = f'give more --epochs than {n}'",
        "text/b.py": "hint = 'use `bertie whiten x --out y`, or `overwrite`'\n'A docstring with --this.'",
        "text/c.py": "x = [compiler, '--version']\ny = 'a -- b, a--b'",
        "cli/a.py": "hint = 'see --help'",
        "jobs/a.py": "class A:\n    example: str = 'bertie a --b'\n    c = option(flag='--c/--d')",
    }
    assert flags_named(files) == ["text/a.py:1: give more --epochs than "]
