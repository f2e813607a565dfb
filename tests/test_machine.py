import json
import sys
from pathlib import Path

import pytest

from bertie import machine
from bertie.machine import PRECISIONS, SAFE_INSTRUCTIONS, Machine, Precision, measure_apart, measure_here, probe

DIE = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
ANSWER = """print('{"runs": true, "speed": 0.5, "note": ""}')"""


def child(code: str) -> list[str]:
    """A stand-in for the measuring process; it finds the precision in sys.argv[1]."""
    return [sys.executable, "-S", "-c", f"import sys\n{code}"]


def counting_child(log: Path) -> list[str]:
    return child(f"open({str(log)!r}, 'a').write(sys.argv[1] + ' ' + sys.argv[2] + '\\n')\n{ANSWER}")


def test_an_illegal_instruction_is_reported_and_harms_nothing(tmp_path: Path) -> None:
    deadly = child(f"if sys.argv[1] == 'bfloat16':\n    {DIE}\n{ANSWER}")
    found = probe(child=deadly, cache=tmp_path / "machine.json")
    assert found.precisions["bfloat16"] == Precision(runs=False, speed=None, note="crashes (SIGILL)")
    assert found.precisions["float32"].runs
    assert found.fastest(exact=False) != "bfloat16"


def test_a_crash_that_a_setting_avoids_names_the_setting() -> None:
    name, value = next(iter(SAFE_INSTRUCTIONS.items()))
    deadly = child(f"import os\nif os.environ.get({name!r}) != {value!r}:\n    {DIE}\n{ANSWER}")
    found = measure_apart("bfloat16", 1, deadly)
    assert not found.runs, "bertie does not set the variable, so the precision must count as not running"
    assert found.note == f"crashes (SIGILL); runs at 0.5 T/s with {name}={value}"


def test_a_child_that_hangs_is_given_up() -> None:
    found = measure_apart("float16", 1, child("import time; time.sleep(600)"), time_limit=0.2)
    assert found == Precision(runs=False, speed=None, note="gave no answer within 0.2 s")


@pytest.mark.parametrize(
    ("code", "note"),
    [
        ("raise RuntimeError('no kernel')", "fails (exit code 1: RuntimeError: no kernel)"),
        ("print('hello')", "fails (exit code 0: no output)"),
        ("pass", "fails (exit code 0: no output)"),
    ],
)
def test_a_child_without_an_answer_does_not_count_as_running(code: str, note: str) -> None:
    assert measure_apart("int8", 1, child(code)) == Precision(runs=False, speed=None, note=note)


def test_a_child_that_cannot_start_is_no_failure(tmp_path: Path) -> None:
    cache = tmp_path / "machine.json"
    found = probe(child=[str(tmp_path / "no-such-program")], cache=cache)
    assert not any(precision.runs for precision in found.precisions.values())
    assert "could not be measured" in found.precisions["float32"].note
    assert found.fastest(exact=False) == "float32"
    assert not cache.exists(), "a passing trouble must not be remembered"


def test_the_answer_may_follow_other_output() -> None:
    assert measure_apart("int8", 1, child(f"print('a library says hello')\n{ANSWER}")).runs


def test_the_second_probe_uses_the_cache_and_refresh_does_not(tmp_path: Path) -> None:
    log, cache = tmp_path / "log", tmp_path / "deep" / "machine.json"
    first = probe(child=counting_child(log), cache=cache)
    assert [line.split()[0] for line in log.read_text().splitlines()] == list(PRECISIONS)
    assert probe(child=counting_child(log), cache=cache) == first
    assert len(log.read_text().splitlines()) == len(PRECISIONS)
    probe(refresh=True, child=counting_child(log), cache=cache)
    assert len(log.read_text().splitlines()) == 2 * len(PRECISIONS)
    assert [file.name for file in cache.parent.iterdir()] == ["machine.json"], "no temporary file may stay behind"


def test_another_thread_count_is_measured_on_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, cache = tmp_path / "log", tmp_path / "machine.json"
    for threads in (1, 3, 1):
        monkeypatch.setattr(machine.torch, "get_num_threads", lambda threads=threads: threads)
        assert probe(child=counting_child(log), cache=cache).threads == threads
    measured = [line.split()[1] for line in log.read_text().splitlines()]
    assert measured == ["1"] * len(PRECISIONS) + ["3"] * len(PRECISIONS)


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"key": 3}', "null", "\x00\xff"])
def test_a_broken_cache_is_measured_again_and_mended(tmp_path: Path, broken: str) -> None:
    cache = tmp_path / "machine.json"
    cache.write_text(broken, encoding="latin-1")
    assert probe(child=child(ANSWER), cache=cache).precisions["float32"].speed == 0.5
    assert len(json.loads(cache.read_text())) == 1


def test_a_cache_entry_that_lacks_a_precision_is_measured_again(tmp_path: Path) -> None:
    cache = tmp_path / "machine.json"
    probe(child=child(ANSWER), cache=cache)
    entries = json.loads(cache.read_text())
    for entry in entries.values():
        del entry["int8"]
    cache.write_text(json.dumps(entries))
    assert probe(child=child(ANSWER), cache=cache).precisions["int8"].runs


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert probe(child=child(ANSWER), cache=tmp_path / "file" / "machine.json").precisions["float32"].runs


@pytest.mark.parametrize("speed", ["Infinity", "NaN", "-1.0", "0.0"])
def test_a_cache_with_impossible_speeds_is_measured_again(tmp_path: Path, speed: str) -> None:
    cache = tmp_path / "machine.json"
    right = probe(child=child(ANSWER), cache=cache).precisions
    found = str(json.loads(cache.read_text())[machine.cache_key()]["float32"]["speed"])
    cache.write_text(cache.read_text().replace(found, speed))
    assert probe(child=child(ANSWER), cache=cache).precisions == right


def test_a_cache_that_other_users_may_write_is_not_read(tmp_path: Path) -> None:
    cache = tmp_path / "machine.json"
    probe(child=child(ANSWER), cache=cache)
    assert machine.read_cache(cache) and cache.stat().st_mode & 0o022 == 0
    cache.chmod(0o666)
    assert not machine.read_cache(cache)
    cache.unlink()
    cache.symlink_to("/dev/zero")
    assert not machine.read_cache(cache)


def test_the_cache_lies_where_the_user_wants_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert machine.cache_file() == tmp_path / "bertie" / "machine.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/anne")
    assert machine.cache_file() == Path("/home/anne/.cache/bertie/machine.json")


def test_fastest_is_measured_among_those_that_run() -> None:
    found = Machine(
        cpu="",
        instruction_sets=(),
        cores=1,
        threads=1,
        memory=0,
        torch="",
        precisions={
            "float32": Precision(runs=True, speed=0.3),
            "bfloat16": Precision(runs=False, speed=None, note="crashes (SIGILL)"),
            "float16": Precision(runs=True, speed=0.2),
            "int8": Precision(runs=True, speed=1.1),
        },
    )
    assert found.fastest(exact=False) == "int8"
    assert found.fastest(exact=True) == "float32"


def test_wrong_numbers_do_not_count_as_running(monkeypatch: pytest.MonkeyPatch) -> None:
    correct = machine.product
    monkeypatch.setattr(machine, "product", lambda *given: lambda: correct(*given)() * 1.5)
    found = measure_here("float32")
    assert not found.runs
    assert "wrong numbers" in found.note


def test_the_real_child_measures_float32() -> None:
    found = measure_apart("float32", 1)
    assert found.runs, found.note
    assert found.speed is not None
    assert found.speed > 0


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_real_child_answers_for_every_precision(precision: str) -> None:
    found = measure_apart(precision, 1)
    assert found.runs or found.note.startswith("crashes (SIG")


def test_the_peak_of_memory_is_of_this_process() -> None:
    held = b"x" * 200_000_000
    assert machine.peak_memory() > len(held)
