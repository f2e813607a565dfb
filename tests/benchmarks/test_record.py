"""Results: entries under kinds of machines, read back, side by side, and what became slower."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.command import new_parser, positive, read_options
from benchmarks.record import (
    Entry,
    Figure,
    Kind,
    all_versions,
    append,
    doubt_of_spread,
    in_figures,
    keep,
    new_entry,
    read_entries,
)
from benchmarks.results import latest, losses_in, main, series_of

AMD = Kind("AMD EPYC 9B14", ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16"), 2)
INTEL = Kind("Intel Xeon", ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16"), 2)


def entry(kind: Kind = AMD, day: int = 1, times: float = 1.7, speed: float = 10_000.0, doubt: str = "") -> Entry:
    figures = [
        Figure("times sentence-transformers", times, 1.6, None, "holds" if times >= 1.6 else "BROKEN"),
        Figure("tokens/s of bertie", speed, doubt=doubt),
        Figure("memory, GB", 0.5, 1.0, verdict="holds", at_most=True),
    ]
    versions, engines = {"torch": "2.13.0"}, {"bertie": "onednn"}
    return Entry("embed.py", kind, f"2026-11-{day:02}T10:30:00+00:00", 2, 5, versions, figures, engines, 0.01)


def test_entries_come_back_under_their_machines(tmp_path: Path) -> None:
    file = tmp_path / "RESULTS.md"
    given = [entry(AMD, 1), entry(INTEL, 2, times=1.5), entry(AMD, 3), entry(INTEL, 4, doubt="a --> b")]
    for one in given:
        append(file, one)
    assert sorted(read_entries(file), key=lambda one: one.date) == given
    lines = file.read_text().splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings == [
        "# Results",
        "## AMD EPYC 9B14, AVX-512 with bfloat16, 2 cores",
        "### embed.py, 2026-11-01 10:30 UTC",
        "### embed.py, 2026-11-03 10:30 UTC",
        "## Intel Xeon, AMX, 2 cores",
        "### embed.py, 2026-11-02 10:30 UTC",
        "### embed.py, 2026-11-04 10:30 UTC",
    ]
    assert lines.count("| times sentence-transformers | 1.70 | 1.60 |  | holds |") == 3
    assert "| memory, GB | 0.5 | at most 1.00 |  | holds |" in lines
    assert "2 threads, 5 rounds; products of bertie by onednn; others used 1.0% of the processor." in lines


def options(tmp_path: Path, *words: str) -> argparse.Namespace:
    parser = new_parser(None, rounds=5)
    parser.add_argument("--texts", type=positive, default=1200)
    parser.add_argument("--only", nargs="+", default=["a", "b"])
    return read_options(parser, ["--results", str(tmp_path / "R.md"), *words], trial=("texts", "only"))


@pytest.mark.parametrize(
    ("words", "doubts"),
    [
        ([], [[]]),
        (["--rounds", "9"], [[]]),
        (["--no-record"], []),
        (["--texts", "60"], []),
        (["--only", "a"], []),
        (["--rounds", "1"], []),
        (["--only", "a", "--record"], [[]]),
        (["--texts", "60", "--rounds", "1", "--record"], [["a trial with --texts and --rounds"]]),
    ],
)
def test_trials_are_recorded_only_on_request(words: list[str], doubts: list[list[str]], tmp_path: Path) -> None:
    given = options(tmp_path, *words)
    keep(given, entry())
    found = read_entries(given.results) if given.results.exists() else []
    assert [one.doubts for one in found] == doubts


def test_a_machine_that_was_not_quiet_decides_nothing(tmp_path: Path) -> None:
    versions = {"bertie": {"bertie": "0.1", "torch": "2.13"}, "peer": {"torch": "2.13", "onnx": "1"}}
    report = {"date": "2026-11-01T10:30:00+00:00", "machine": {"threads": 2}, "rounds": 5, "versions": versions}
    assert new_entry("embed.py", report, [], 0.04).doubts == []
    noisy = new_entry("embed.py", report, [Figure("times", 2.0)], 0.31)
    assert noisy.doubts == ["others used 31% of the processor"]
    assert noisy.doubt_of(noisy.figures[0])
    append(tmp_path / "R.md", noisy)
    assert "**Decides nothing**: others used 31% of the processor." in (tmp_path / "R.md").read_text()
    assert doubt_of_spread(0.02, 0.1) == "" and doubt_of_spread(0.02, 0.14) == "rounds differ by 14%"


def test_versions_are_told_once() -> None:
    found = all_versions([{"torch": "2.13", "onnx": "1"}, {"torch": "2.13"}, {"torch": "2.14"}])
    assert found == {"torch": "2.13 and 2.14", "onnx": "1"}


def test_losses_of_more_than_a_tenth_are_found() -> None:
    """Against the best and against the one before; noise neither loses nor counts as the best."""
    noisy = replace(entry(AMD, 2, times=9.0), doubts=["others used 31% of the processor"])
    history = [entry(AMD, 1, times=2.0), noisy, entry(AMD, 3, times=1.75), entry(AMD, 4, times=1.7), entry(INTEL, 5)]
    (loss,) = losses_in(series_of(history))
    assert (loss.which, loss.share) == ("best", pytest.approx(0.15))
    told = "embed.py, times sentence-transformers: 1.70 is 15% below 2.00 (best, 2026-11-01), 2 threads, AMD EPYC 9B14"
    assert str(loss).startswith(told)
    assert losses_in(series_of([*history, entry(AMD, 6, times=1.9)])) == []
    (slower,) = losses_in(series_of([entry(AMD, 1), entry(AMD, 2, speed=8000.0)]))
    assert slower.which == "best and previous" and slower.row[1] == "tokens/s of bertie"
    heavier = replace(entry(AMD, 2), figures=[Figure("memory, GB", 0.6, 1.0, at_most=True)])
    assert "0.6 is 20% above 0.5" in str(losses_in(series_of([entry(AMD, 1), heavier]))[0])


def test_the_latest_that_decides_is_shown() -> None:
    series = series_of([entry(AMD, 1, speed=1.0), entry(AMD, 3, speed=3.0, doubt="noise"), entry(AMD, 2, speed=2.0)])
    key = (("embed.py", "tokens/s of bertie", 2), AMD)
    assert latest(series[key]).figure.value == 2.0
    only_noise = series_of([entry(AMD, 1, speed=1.0, doubt="noise")])
    assert latest(only_noise[key]).figure.value == 1.0


def test_machines_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "R.md"
    words = ["--results", str(file), "--strict"]
    assert main(words) == 0 and "no run is recorded" in capsys.readouterr().out
    append(file, entry(AMD, 1, times=1.9))
    assert main(words) == 0 and "nothing is more than 10% worse" in capsys.readouterr().out
    append(file, entry(INTEL, 2, times=1.5, doubt="rounds differ by 14%"))
    assert main(words) == 1, "a bar is broken"
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "A: AMD EPYC 9B14, AVX-512 with bfloat16, 2 cores; latest run 2026-11-01"
    (ratio,) = [line.split() for line in told if "times sentence-transformers" in line]
    assert ratio[-3:] == ["1.60", "1.90", "1.50!"]
    (speed,) = [line.split() for line in told if "tokens/s" in line]
    assert speed[-2:] == ["10,000", "10,000~"]
    append(file, entry(AMD, 3, times=1.65))
    assert main(words[:2]) == 0 and "1.65 is 13% below 1.90" in capsys.readouterr().out


def test_the_kind_of_this_machine_can_be_told() -> None:
    assert str(Kind.here().cores) in str(Kind.here())
    assert Kind("x", ("avx2",), 1).level == "AVX2" and str(Kind("x", (), 1)).endswith("1 core")


def test_figures_have_three_digits() -> None:
    assert [in_figures(value) for value in (0.8123, 4.512, 12_345.6, None)] == ["0.812", "4.51", "12,346", ""]
