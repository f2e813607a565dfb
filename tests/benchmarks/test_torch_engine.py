"""Engines: what bertie says of its own, and a peer's second row that gets the same."""

import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.command import Place, started, with_same_engine
from benchmarks.contenders import torch_engine
from benchmarks.contenders.torch_engine import VARIABLE, is_onednn, matmul_settings, own_engine, peer_engine, set_up
from benchmarks.figures import OURS

from benchmarks import command

PEER = "sentence-transformers"


def test_bertie_names_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTIE_ENGINE", "onednn")
    assert own_engine() == "onednn"


def test_only_onednn_makes_a_second_row() -> None:
    assert is_onednn("torch; onednn-packed for inference medium")
    assert not any(map(is_onednn, ("", "mkl", "torch")))


def test_the_setting_is_named_by_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    set_up()
    assert peer_engine() == ""
    before = matmul_settings().fp32_precision
    try:
        monkeypatch.setenv(VARIABLE, "onednn")
        set_up()
        for accurate, words in ((True, "oneDNN, float32 products"), (False, "oneDNN, 16-bit products")):
            monkeypatch.setattr(torch_engine, "is_accurate", lambda found=accurate: found)
            assert peer_engine() == words
    finally:
        matmul_settings().fp32_precision = before


class FakeWorker:
    """Of which ours says the engine that the test wants."""

    wanted = ""
    fails = False

    def __init__(self, name: str, python: Path, module: str, environment: dict[str, str], log: Path):
        if VARIABLE in environment and self.fails:
            raise RuntimeError("ended with code -4")
        self.name, self.environment, self.engine = name, environment, self.wanted if name == OURS else ""

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("engine", "fails", "names"),
    [
        ("onednn", False, [PEER, OURS, f"{PEER}, same engine"]),
        ("onednn", True, [PEER, OURS]),
        ("mkl", False, [PEER, OURS]),
        ("", False, [PEER, OURS]),
    ],
)
def test_the_second_row_appears_only_where_bertie_chose_another_engine(
    engine: str, fails: bool, names: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(FakeWorker, "wanted", engine)
    monkeypatch.setattr(FakeWorker, "fails", fails)
    monkeypatch.setattr(command, "Worker", FakeWorker)
    python = Path(sys.executable)
    places = with_same_engine(PEER, {PEER: Place("sentence_transformers", python), OURS: Place("bertie", python)})
    with started(places, 2, tmp_path) as workers:
        made: dict[str, Any] = {**workers}
        assert list(made) == names
        assert [VARIABLE in worker.environment for worker in made.values()] == [False, False, True][: len(names)]
