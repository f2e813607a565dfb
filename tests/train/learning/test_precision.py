"""The precision of a run: what was measured decides, and only where the processor could be faster at all."""

import pytest

from bertie.errors import SpecError
from bertie.machine import Machine, Precision
from bertie.train.learning import precision
from bertie.train.learning.precision import WIDE, choose_precision


def machine(short: Precision) -> Machine:
    precisions = {"float32": Precision(runs=True, speed=0.2), "bfloat16": short}
    return Machine(cpu="a", instruction_sets=(), cores=2, threads=2, memory=1, torch="2", precisions=precisions)


@pytest.mark.parametrize(
    ("short", "chosen"),
    [
        (Precision(runs=True, speed=0.7), "bfloat16"),
        (Precision(runs=True, speed=0.25), "float32"),
        (Precision(runs=False, speed=None, note="crashes (SIGILL)"), "float32"),
    ],
)
def test_auto_takes_what_is_faster(short: Precision, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "cpu_flags", lambda: {"avx512_bf16"})
    monkeypatch.setattr(precision, "probe", lambda: machine(short))
    found, why = choose_precision("auto", WIDE)
    assert found == chosen
    assert "bfloat16" in why
    assert short.note in why


def test_nothing_is_measured_where_it_cannot_be_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "cpu_flags", lambda: {"avx2"})
    monkeypatch.setattr(precision, "probe", lambda: pytest.fail("measured"))
    assert choose_precision("auto", WIDE)[0] == "float32"
    assert choose_precision("bfloat16", WIDE)[0] == "bfloat16"


def test_narrow_models_keep_their_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "cpu_flags", lambda: {"amx_bf16"})
    monkeypatch.setattr(precision, "probe", lambda: machine(Precision(runs=True, speed=2.0)))
    assert choose_precision("auto", WIDE)[0] == "bfloat16"
    assert choose_precision("auto", 384) == ("float32", "at width 384 it is faster than bfloat16")
    assert choose_precision("bfloat16", 384) == ("bfloat16", "as asked")


def test_what_would_end_the_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "cpu_flags", lambda: {"amx_bf16"})
    monkeypatch.setattr(precision, "probe", lambda: machine(Precision(runs=False, speed=None, note="crashes (SIGILL)")))
    with pytest.raises(SpecError, match="bfloat16 crashes"):
        choose_precision("bfloat16", WIDE)
