"""The precision of a run: what was measured decides, and only where the processor could be faster at all."""

import pytest

from bertie.errors import SpecError
from bertie.nn.products.choice import Class, Role
from bertie.nn.products.measuring import EngineReport, Measured, Reports
from bertie.train.learning import precision
from bertie.train.learning.precision import choose_precision


def reports(gain: float, note: str = "") -> Reports:
    def one(speed: float, error: float) -> EngineReport:
        keys = [f"{role}, {kind}" for role in Role for kind in Class]
        return EngineReport(products={key: Measured(speed=speed, error=error) for key in keys})

    short = EngineReport(note=note) if note else one(gain * 2.0, 3e-3)
    return {"torch": one(1.0, 1e-7), "onednn": one(2.0, 1.5e-7), "onednn-bfloat16": short}


def machine(monkeypatch: pytest.MonkeyPatch, found: Reports, flags: str = "amx_bf16") -> None:
    monkeypatch.setattr(precision, "cpu_flags", lambda: {flags})
    monkeypatch.setattr(precision, "measured_engines", lambda short: found)


@pytest.mark.parametrize(("gain", "chosen"), [(3.0, "bfloat16"), (1.6, "bfloat16"), (1.2, "float32")])
def test_auto_takes_what_is_worth_it(gain: float, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, reports(gain))
    found, why = choose_precision("auto", 256)
    assert found == chosen
    assert why == f"products in bfloat16 run at {gain:.2f} times their speed in float32 at width 256 here"


def test_nothing_is_measured_where_it_cannot_be_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, {}, flags="avx2")
    assert choose_precision("auto", 768)[0] == "float32"
    found, why = choose_precision("bfloat16", 768)
    assert found == "bfloat16"
    assert "no instructions" in why


def test_what_would_end_the_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, reports(1.0, note="crashes (SIGILL)"))
    assert choose_precision("auto", 768) == ("float32", "bfloat16 crashes (SIGILL) here")
    with pytest.raises(SpecError, match=r"bfloat16 crashes \(SIGILL\) on this machine; give `precision=float32`"):
        choose_precision("bfloat16", 768)


def test_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, reports(0.5))
    assert choose_precision("float32", 768) == ("float32", "as asked")
    assert choose_precision("bfloat16", 768) == ("bfloat16", "as asked")
