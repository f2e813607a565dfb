"""The peak: every engine that torch has is measured, and those that are not float32 do not count."""

import pytest
import torch
from benchmarks.contenders import gemm


def test_all_engines_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "SECONDS", 0.001)
    monkeypatch.setattr(gemm, "NUM_TOKENS", (16,))
    found = gemm.answer({"products": [(32, 48), (48, 32)]})
    expected = [gemm.OWN]
    if torch.backends.mkl.is_available():
        expected.append("MKL packed")
    if torch.backends.mkldnn.is_available():
        expected += ["oneDNN", "oneDNN packed"]
    assert list(found["engines"]) == expected
    assert len(found["all"]) == 2 * len(expected)
    assert found["flops"] == max(found["engines"].values()) == found["all"][found["product"]]


def test_an_engine_that_rounds_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounding(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> gemm.Product:
        return lambda: (states.bfloat16() @ weight.bfloat16().T).float() + bias

    def missing(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> gemm.Product:
        raise NotImplementedError

    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(gemm, "packed_mkl_product", missing)
    monkeypatch.setattr(gemm, "onednn_product", rounding)
    monkeypatch.setattr(gemm, "packed_onednn_product", missing)
    assert list(gemm.engines(torch.randn(16, 32), torch.randn(8, 32), torch.randn(8))) == [gemm.OWN]
