from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained, load
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.quickstart import pace
from bertie.quickstart.pace import LEAST, Pace, measure_pace, read_pace
from bertie.text.tokens import FlatIds

TEXTS = ["a b c", "b c", "c a b a"] * 100


@pytest.fixture
def base(tmp_path: Path) -> Path:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]
    Pretrained(Model.new(bert(SIZES["tiny"], vocab_size=len(pieces)))).save(tmp_path / "base")
    (tmp_path / "base" / "vocab.txt").write_text("\n".join(pieces) + "\n")
    return tmp_path / "base"


def test_time_becomes_texts() -> None:
    assert Pace(100.0).num_texts(minutes=2) == 12_000
    assert Pace(0.1).num_texts(minutes=2) == LEAST, "too few would teach nothing"


def test_a_pace_is_measured_once(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_pace(tmp_path / "pace.json", str(base), TEXTS, 64)
    assert first.texts_per_second > 0
    monkeypatch.setattr(pace, "load", lambda base: pytest.fail("measured again"))
    assert read_pace(tmp_path / "pace.json", str(base), TEXTS, 64) == first


@pytest.mark.parametrize(("count", "sizes"), [(300, [32] * 9), (40, [32, 32, 8]), (20, [20, 20])])
def test_it_is_measured_by_steps_that_learn(
    count: int, sizes: list[int], base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes half a second, so that steps of 32 learn from 64 texts a second."""
    clock, read = iter(range(1000)), list[int]()
    monkeypatch.setattr(pace.time, "perf_counter", lambda: next(clock) / 2)
    model = load(str(base))
    tokenizer, weight = model.tokenizer, next(model.model.encoder.parameters())
    assert tokenizer is not None
    encode, before = tokenizer.encode_ids, weight.detach().clone()

    def counted(texts: Sequence[str], max_length: int) -> FlatIds:
        read.append(len(texts))
        return encode(texts, max_length=max_length)

    monkeypatch.setattr(tokenizer, "encode_ids", counted)
    rate = measure_pace(model, TEXTS[:count], 64).texts_per_second * pace.BESIDES
    assert read == sizes
    assert rate == pytest.approx({300: 64, 40: 40, 20: 40}[count])
    assert not torch.equal(before, weight)
