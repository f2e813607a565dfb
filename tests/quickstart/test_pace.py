from pathlib import Path
from types import SimpleNamespace

import pytest

from bertie.quickstart import pace
from bertie.quickstart.pace import LEAST, Pace, read_pace


def test_time_becomes_texts() -> None:
    assert Pace(100.0).num_texts(minutes=2) == 12_000
    assert Pace(0.1).num_texts(minutes=2) == LEAST, "too few would teach nothing"


def test_a_pace_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded: list[int] = []
    model = SimpleNamespace(encode_report=lambda texts, **options: embedded.append(len(texts)))
    monkeypatch.setattr(pace, "load", lambda base: model)
    texts = [str(number) for number in range(10_000)]
    first = read_pace(tmp_path / "pace.json", "my-model", texts, 64)
    assert embedded == [pace.SAMPLE] * pace.ROUNDS
    assert read_pace(tmp_path / "pace.json", "my-model", texts, 64) == first
    assert len(embedded) == pace.ROUNDS
    assert first.texts_per_second > 0
