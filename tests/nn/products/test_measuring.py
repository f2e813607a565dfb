"""Engines measured in a child process, which may do anything."""

import json
import sys
from pathlib import Path

import pytest

from bertie.nn.products import measuring
from bertie.nn.products.choice import Class, Role
from bertie.nn.products.engines import ENGINES
from bertie.nn.products.measuring import measure_apart, measure_here, measured_engines, read_reports

EXACT = [name for name, engine in ENGINES.items() if engine.exact]
DIE = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
ANSWER = """import json
print("a library says hello")
print(json.dumps({name: {"products": {"forward, wide": {"speed": 1e9, "error": 1e-7}}} for name in sys.argv[1:]}))"""


def child(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", f"import sys\n{code}"]


def test_one_engine_that_kills_its_child_leaves_the_others(tmp_path: Path) -> None:
    deadly = child(f"if 'onednn' in sys.argv:\n    {DIE}\n{ANSWER}")
    found = measured_engines(child=deadly, cache=tmp_path / "engines.json")
    assert found["onednn"].note == "crashes (SIGILL)"
    assert not found["onednn"].products
    assert found["torch"].products
    assert found["onednn-packed"].products


@pytest.mark.parametrize(
    ("code", "note"),
    [
        ("import time; time.sleep(600)", "gave no answer within 0.3 s"),
        ("raise RuntimeError('no kernel')", "fails (exit code 1: RuntimeError: no kernel)"),
        ("print('{}')", "fails (exit code 0: no output)"),
        ("print('nonsense')", "fails (exit code 0: no output)"),
    ],
)
def test_a_child_without_an_answer(code: str, note: str) -> None:
    assert measure_apart(["onednn"], child(code), 0.3)["onednn"].note == note


def test_nothing_is_remembered_where_no_child_starts(tmp_path: Path) -> None:
    cache = tmp_path / "engines.json"
    found = measured_engines(child=[str(tmp_path / "none")], cache=cache)
    assert "could not be measured" in found["torch"].note
    assert not cache.exists()


def test_answers_are_remembered(tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "engines.json"
    first = measured_engines(child=child(ANSWER), cache=cache)
    assert measured_engines(child=child(DIE), cache=cache) == first
    assert list(first) == EXACT
    assert measured_engines(refresh=True, child=child(DIE), cache=cache)["torch"].note == "crashes (SIGILL)"


def test_engines_of_16_bits_are_measured_when_they_are_asked_for(tmp_path: Path) -> None:
    cache = tmp_path / "engines.json"
    measured_engines(child=child(ANSWER), cache=cache)
    assert list(measured_engines(short=True, child=child(ANSWER), cache=cache)) == list(ENGINES)
    assert list(measured_engines(child=child(DIE), cache=cache)) == EXACT


@pytest.mark.parametrize("content", ["", "[]", '{"a": 5}', '{"a": {"torch": {"products": 3}}}', "[" * 100_000])
def test_a_broken_cache_is_measured_again(content: str, tmp_path: Path) -> None:
    cache = tmp_path / "engines.json"
    cache.write_text(content)
    assert read_reports(cache) == {}
    assert measured_engines(child=child(ANSWER), cache=cache)["torch"].products
    json.loads(cache.read_text())


def test_a_cache_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    cache = tmp_path / "engines.json"
    measured_engines(child=child(ANSWER), cache=cache)
    cache.chmod(0o666)
    assert read_reports(cache) == {}


def test_real_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SECONDS", 0.0)
    monkeypatch.setattr(measuring, "USUAL_ROWS", 64)
    found = measure_here(["torch", "onednn", "onednn-packed"])
    assert set(found["onednn"].products) == {f"{role}, {kind}" for role in Role for kind in Class}
    assert set(found["onednn-packed"].products) == {f"{Role.INFERENCE}, {kind}" for kind in Class}
    for report in found.values():
        assert all(1e8 < one.speed < 1e14 and 0 < one.error < 1e-5 for one in report.products.values())
