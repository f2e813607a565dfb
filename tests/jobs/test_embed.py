"""`bertie embed` around a fake model: what it passes on, what it prints, and how it leaves."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from bertie.errors import UserError
from bertie.jobs.embed import Vectors, embed
from bertie.reporting.events import Event
from bertie.search import bulk
from bertie.search.bulk import EmbedReport
from bertie.text.tokenizers.tokens import UnknownCount

Run = Callable[..., CompletedProcess[str]]


@dataclass
class FakeEncoding:
    vectors: np.ndarray
    num_tokens: int
    num_truncated: int
    num_cut: int
    num_empty: int
    num_replaced: int = 0
    unknown: UnknownCount = field(default_factory=UnknownCount)


class FakeModel:
    digest = "d1gest"
    makes_raw_vectors = False

    def __init__(self) -> None:
        self.given: list[dict[str, object]] = []
        self.interrupt_at = -1

    def encode_report(
        self,
        texts: list[str],
        *,
        progress: bool,
        pooling: str = "mean",
        layers: str | int = "last",
        normalize: bool = True,
        size: int | None = None,
        max_length: int | None = None,
        batch_tokens: int = 100,
    ) -> FakeEncoding:
        if len(self.given) == self.interrupt_at:
            raise KeyboardInterrupt
        assert not progress, "two progress bars at once"
        lengths = {"size": size, "max_length": max_length, "batch_tokens": batch_tokens}
        self.given.append({"pooling": pooling, "layers": layers, "normalize": normalize, **lengths})
        vectors = np.array([[len(text), 1] for text in texts], np.float32)
        return FakeEncoding(vectors, 10 * len(texts), 2, 5, sum(not text for text in texts))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    model = FakeModel()
    monkeypatch.setattr("bertie.jobs.embed.open_model", lambda folder, job: model)
    monkeypatch.setattr(bulk, "CHUNK_TEXTS", 2)
    return model


@pytest.fixture
def run(model: FakeModel, tmp_path: Path, run_bertie: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "in.csv").write_text("id,review\n1,one\n2,\n3,three\n4,four\n5,five\n")

    def run(*arguments: object, text: str = "") -> CompletedProcess[str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return run_bertie("embed", "folder", *arguments)

    return run


def test_writes_vectors_and_closes_with_a_summary(run: Run, tmp_path: Path) -> None:
    result = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert result.returncode == 0
    assert np.load(tmp_path / "v.npy")[:, 0].tolist() == [3, 0, 5, 4, 4]
    assert f"{tmp_path}/v.npy: 5 texts as vectors of 2; 50 tokens in " in result.stdout
    assert "; 6 texts truncated (15 tokens cut), 1 empty" in result.stdout
    assert "reading the column 'review' (of 'id', 'review')" in result.stderr
    assert "reading the column" not in result.stdout and "corrected" not in result.stdout


def test_corrected_words_are_reported() -> None:
    report = EmbedReport("v.npy", 5, 2, 50, 0, 0, 0, 3, 0, 1.0)
    assert str(Vectors(report)).endswith(", 0 empty, 3 words corrected")


def test_json_is_the_only_thing_on_stdout(run: Run, tmp_path: Path) -> None:
    result = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy", "--json")
    report = json.loads(result.stdout)
    assert report["num_texts"] == 5 and report["num_cut"] == 15 and report["target"] == f"{tmp_path}/v.npy"


def test_options_reach_the_encoder_and_only_those_given(run: Run, model: FakeModel, tmp_path: Path) -> None:
    run(tmp_path / "in.csv", "--out", tmp_path / "a.npy")
    assert list(model.given[-1].values()) == ["mean", "last", True, None, None, 100]
    options = ["--pooling", "first", "--layers", -2, "--no-normalize", "--size", 3, "--max-length", 7]
    options += ["--batch-tokens", 50, "--dtype", "float16"]
    run(tmp_path / "in.csv", "--out", tmp_path / "b.npy", *options)
    assert list(model.given[-1].values()) == ["first", -2, False, 3, 7, 50]
    assert np.load(tmp_path / "b.npy").dtype == np.float16


def test_standard_input_in_a_named_format(run: Run, tmp_path: Path) -> None:
    lines = '{"body": "one"}\n{"body": null}\n'
    options = ["--format", "jsonl", "--column", "body", "--null-as-empty"]
    result = run("-", "--out", tmp_path / "v.npy", *options, text=lines)
    assert result.returncode == 0, result.stderr
    assert np.load(tmp_path / "v.npy")[:, 0].tolist() == [3, 0]


def test_an_interrupt_says_how_to_go_on_and_the_command_continues(run: Run, model: FakeModel, tmp_path: Path) -> None:
    model.interrupt_at = 2
    result = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert result.returncode == 130
    assert "stopped; 4 texts are safe, and the same command continues there" in result.stderr
    model.interrupt_at = -1
    model.digest = "other"
    refused = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert refused.returncode == 2 and "model was 'd1gest' and is now 'other'" in refused.stderr
    model.digest = "d1gest"
    result = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert "5 texts (4 of them by earlier runs)" in result.stdout


def test_a_finished_file_needs_overwrite(run: Run, tmp_path: Path) -> None:
    run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert run(tmp_path / "in.csv", "--out", tmp_path / "v.npy").returncode == 2
    assert run(tmp_path / "in.csv", "--out", tmp_path / "v.npy", "--overwrite").returncode == 0


def test_events_carry_the_place_and_the_rates(model: FakeModel, tmp_path: Path) -> None:
    events: list[Event] = []
    embed(model, ["one", "two", "three"], on_event=events.append)
    last = [event.data for event in events if event.kind == "progress"][-1]
    assert (last["done"], last["unit"], last["fraction"]) == (3, "texts", 1.0)
    assert last["tokens_per_second"] > 0


def test_from_python_vectors_are_an_array(model: FakeModel, tmp_path: Path) -> None:
    found = embed(model, (text for text in ["one", "", "three"]), dtype="float16")
    assert found.vectors[:, 0].tolist() == [3, 0, 5] and found.vectors.dtype == np.float16
    kept = embed(model, ["one", "", "three"], out=tmp_path / "v.parquet", with_text=True)
    assert kept.vectors[:, 0].tolist() == [3, 0, 5] and kept.file == tmp_path / "v.parquet"
    assert "3 texts as vectors of 2" in str(found)
    with pytest.raises(UserError, match="one file of texts was expected, not 2"):
        embed(model, [tmp_path, tmp_path])


def test_on_the_command_line_a_file_is_needed(run: Run, tmp_path: Path) -> None:
    done = run(tmp_path / "in.csv")
    assert (done.returncode, "--out is missing" in done.stderr) == (2, True)


def test_vectors_that_nobody_should_compare_are_told(run: Run, model: FakeModel, tmp_path: Path) -> None:
    assert "bertie whiten" not in run(tmp_path / "in.csv", "--out", tmp_path / "a.npy").stderr
    model.makes_raw_vectors = True
    result = run(tmp_path / "in.csv", "--out", tmp_path / "b.npy")
    assert "not trained to compare vectors" in result.stderr and "similarity" in result.stderr
    assert "bertie whiten" in result.stderr and "not trained to compare" not in result.stdout
