"""Counters of the system: the parsing, not the load."""

import os
import time

import pytest
from benchmarks.load import busy_seconds, load_warning, process_seconds


def test_a_busy_process_is_seen_in_both_counters() -> None:
    before, own = busy_seconds(), process_seconds(os.getpid())
    if before is None or own is None:
        pytest.skip("this system has no /proc")
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    spent = (process_seconds(os.getpid()) or 0) - own
    total = (busy_seconds() or 0) - before
    assert 0.05 <= spent <= total + 0.05  # counted in hundredths


def test_a_process_that_is_gone_has_no_seconds() -> None:
    assert process_seconds(2**22 + 1) is None


def test_only_a_busy_machine_is_warned_of() -> None:
    assert load_warning(0.2) is None
    assert "load average 1.5" in (load_warning(1.5) or "")
