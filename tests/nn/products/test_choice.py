"""Which engine a product gets."""

from collections.abc import Iterator

import pytest
from torch import Tensor

from bertie.errors import SpecError
from bertie.nn.products import choice, measuring
from bertie.nn.products.choice import Class, Role, chosen, class_of, describe, engine_for, products_in, use_engine
from bertie.nn.products.engines import ENGINES
from bertie.nn.products.measuring import EngineReport, Measured, Reports

BIG = 4096  # rows: enough for any weight to be worth a choice
KEYS = [f"{role}, {kind}" for role in Role for kind in Class]


@pytest.fixture(autouse=True)
def unforced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("BERTIE_ENGINE", raising=False)
    chosen.cache_clear()
    yield
    chosen.cache_clear()


def report(speed: float, error: float = 1e-7) -> EngineReport:
    return EngineReport(products={key: Measured(speed=speed, error=error) for key in KEYS})


def measured(monkeypatch: pytest.MonkeyPatch, **reports: EngineReport) -> None:
    found: Reports = {"torch": report(1.0), **{name.replace("_", "-"): one for name, one in reports.items()}}
    monkeypatch.setattr(measuring, "measured_engines", lambda short: found)


def chosen_name(role: Role = Role.FORWARD, rows: int = BIG) -> str:
    engine = engine_for(role, (1024, 256), rows)
    return "torch" if engine is None else next(name for name, one in ENGINES.items() if one is engine)


def test_the_fastest_that_is_as_accurate(monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, onednn=report(2.0), onednn_packed=report(3.0))
    assert chosen_name(Role.INFERENCE) == "onednn-packed"
    assert chosen_name() == "onednn", "packed weights cannot learn"


@pytest.mark.parametrize("other", [report(1.05), report(9.0, error=3e-7), EngineReport(note="crashes (SIGILL)")])
def test_torch_stays_where_nothing_is_clearly_better(other: EngineReport, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, onednn=other)
    assert chosen_name() == "torch"
    assert describe() == "torch"


def test_16_bits_only_where_they_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, onednn_bfloat16=report(5.0, error=3e-3))
    assert chosen_name() == "torch"
    with products_in("bfloat16"):
        assert chosen_name() == "onednn-bfloat16"
    assert chosen_name() == "torch"


def test_an_engine_of_16_bits_that_is_nonsense_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, onednn_bfloat16=report(5.0, error=0.5))
    with products_in("bfloat16"):
        assert chosen_name() == "torch"


def test_a_report_that_lies_about_accuracy_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, onednn=report(9.0))
    wrong = ENGINES["onednn"]._replace(linear=lambda *_: _[0] @ _[1].t() * 1.01, multiply=lambda a, b: a @ b * 1.01)
    monkeypatch.setitem(ENGINES, "onednn", wrong)
    with pytest.warns(UserWarning, match="engine onednn is wrong by 0.01: torch computes"):
        assert chosen_name() == "torch"


def test_an_engine_that_fails_here_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Tensor:
        raise RuntimeError("no such instruction")

    measured(monkeypatch, onednn=report(9.0))
    monkeypatch.setitem(ENGINES, "onednn", ENGINES["onednn"]._replace(linear=fail, multiply=fail))
    with pytest.warns(UserWarning, match="onednn fails"):
        assert chosen_name() == "torch"


def test_small_products_are_torchs_and_need_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "measured_engines", lambda short: pytest.fail("measured"))
    assert chosen_name(rows=8) == "torch"


def test_packed_weights_are_for_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    only = {key: one for key, one in report(3.0).products.items() if key.startswith(Role.INFERENCE)}
    measured(monkeypatch, onednn_packed=EngineReport(products=only))
    assert chosen_name(Role.INFERENCE) == "onednn-packed"
    assert chosen_name(Role.FORWARD) == "torch"
    with use_engine("onednn-packed"):
        assert chosen_name(Role.WEIGHT_GRADIENT, rows=1) == "torch"


def test_engines_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    with use_engine("onednn"):
        assert chosen_name(rows=1) == describe() == "onednn"
    monkeypatch.setenv("BERTIE_ENGINE", "onednn")
    assert chosen_name(rows=1) == describe() == "onednn"
    with pytest.raises(SpecError, match="there is no engine 'mkl'; choose one of torch, onednn"), use_engine("mkl"):
        pass
    monkeypatch.setenv("BERTIE_ENGINE", "mkl")
    with pytest.raises(SpecError, match="there is no engine 'mkl'"):
        chosen_name()


def test_classes() -> None:
    shapes = {(768, 256): "narrow", (1536, 384): "medium", (3072, 768): "wide", (30522, 128): "vocabulary"}
    assert {shape: class_of(shape).value for shape in shapes} == shapes
    assert all(class_of(shape) is kind for kind, shape in choice.SHAPES.items())


def test_a_mixed_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    key = f"{Role.FORWARD}, {Class.WIDE}"
    measured(monkeypatch, onednn=EngineReport(products={key: Measured(speed=2.0, error=1e-7)}))
    assert describe() == "torch; onednn for forward wide"
