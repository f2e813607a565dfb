"""The peak: the fastest of all measurements, kept between processes, never below what a run reached."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from bertie import machine, peak


@pytest.fixture(autouse=True)
def no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(peak, "_raised", {})


def measuring(monkeypatch: pytest.MonkeyPatch, *speeds: float) -> None:
    """These are what the next measurements find."""
    given: Iterator[float] = iter(speeds)
    monkeypatch.setattr(peak, "measure_products", lambda: next(given))


def test_the_fastest_of_all_measurements_counts_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 2e11, 1e11, 3e11)
    assert peak.peak_flops() == 2e11
    assert peak.peak_flops() == 2e11, "it is measured once"
    assert peak.peak_flops(refresh=True) == 2e11, "the machine was busy: the earlier measurement stands"
    assert peak.peak_flops(refresh=True) == 3e11
    monkeypatch.setattr(peak, "_raised", {})  # another process
    assert peak.peak_flops() == 3e11


def test_a_run_that_is_faster_raises_it_in_its_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 2e11)
    assert peak.peak_flops() == 2e11
    peak.raise_peak(2.5e11)
    peak.raise_peak(1e11)
    assert peak.peak_flops() == 2.5e11
    monkeypatch.setattr(peak, "_raised", {})
    assert peak.peak_flops() == 2e11


def test_what_was_probed_counts_too_and_other_precisions_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 2e11)
    assert peak.peak_flops("bfloat16") is None, "it may end the process"
    known = {name: machine.Precision(runs=True, speed=0.5) for name in machine.PRECISIONS}
    machine.write_cache(machine.cache_file(), {machine.cache_key(): known})
    assert peak.peak_flops() == peak.peak_flops("bfloat16") == 0.5e12


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": "x"}', '{"a": null}', '{"a": -1, "b": 1e99, "c": NaN}'])
def test_a_broken_file_is_no_file(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 2e11)
    peak.kept_file().parent.mkdir(mode=0o700)
    peak.kept_file().write_text(content)
    peak.kept_file().chmod(0o600)
    assert peak.read_kept() == {}
    assert peak.peak_flops() == 2e11
    assert list(peak.read_kept().values()) == [2e11]


def test_a_folder_that_cannot_be_written_costs_one_measurement_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    measuring(monkeypatch, 2e11, 1e11)
    assert peak.peak_flops() == 2e11
    assert peak.peak_flops() == 2e11


def test_engines_give_the_same_product() -> None:
    states, weight = torch.randn(16, 32), torch.randn(24, 32)
    with torch.inference_mode():
        found = [product() for product in peak.products(states, weight)]
    assert len(found) == (3 if torch.backends.mkldnn.is_available() else 1)
    for one in found:
        torch.testing.assert_close(one, states @ weight.T, rtol=1e-4, atol=1e-4)


def test_the_real_measurement_finds_a_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "SHAPES", ((64, 32, 64), (32, 64, 16)))
    monkeypatch.setattr(peak, "SECONDS", 0.001)
    assert 1e6 < peak.measure_products() < peak.FASTEST
