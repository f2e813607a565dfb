"""`bertie embed` around a fake model: what it passes on, what it prints, and how it leaves."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

import bertie
import bertie.cli.embed
from bertie.cli.embed import describe
from bertie.errors import UserError
from bertie.search import bulk
from bertie.search.bulk import EmbedProgress, EmbedReport


@dataclass
class FakeEncoding:
    vectors: np.ndarray
    num_tokens: int
    num_truncated: int
    num_cut: int
    num_empty: int
    num_replaced: int = 0


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
    monkeypatch.setattr(bertie, "load", lambda folder: model, raising=False)
    monkeypatch.setattr(bulk, "CHUNK_TEXTS", 2)
    return model


@pytest.fixture
def run(model: FakeModel, tmp_path: Path) -> Callable[..., Result]:
    (tmp_path / "in.csv").write_text("id,review\n1,one\n2,\n3,three\n4,four\n5,five\n")
    app = typer.Typer()
    app.command()(bertie.cli.embed.embed)

    def run(*arguments: object, text: str | None = None) -> Result:
        return CliRunner().invoke(app, ["folder", *map(str, arguments)], input=text)

    return run


def test_writes_vectors_and_closes_with_a_summary(run: Callable[..., Result], tmp_path: Path) -> None:
    result = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert result.exit_code == 0
    assert np.load(tmp_path / "v.npy")[:, 0].tolist() == [3, 0, 5, 4, 4]
    assert f"{tmp_path}/v.npy: 5 texts as vectors of 2; 50 tokens in " in result.stdout
    assert "; 6 texts truncated (15 tokens cut), 1 empty" in result.stdout
    assert "reading the column 'review' (of 'id', 'review')" in result.stderr
    assert "reading the column" not in result.stdout and "put right" not in result.stdout


def test_words_that_were_put_right_are_told() -> None:
    report = EmbedReport("v.npy", 5, 2, 50, 0, 0, 0, 3, 0, 1.0, ())
    assert describe(report).endswith(", 0 empty, 3 words put right")


def test_json_is_the_only_thing_on_stdout(run: Callable[..., Result], tmp_path: Path) -> None:
    result = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy", "--json")
    report = json.loads(result.stdout)
    assert report["num_texts"] == 5 and report["num_cut"] == 15 and report["target"] == f"{tmp_path}/v.npy"


def test_options_reach_the_encoder_and_only_those_given(
    run: Callable[..., Result], model: FakeModel, tmp_path: Path
) -> None:
    run(tmp_path / "in.csv", "--out", tmp_path / "a.npy")
    assert list(model.given[-1].values()) == ["mean", "last", True, None, None, 100]
    options = ["--pooling", "first", "--layers", -2, "--no-normalize", "--size", 3, "--max-length", 7]
    options += ["--batch-tokens", 50, "--dtype", "float16"]
    run(tmp_path / "in.csv", "--out", tmp_path / "b.npy", *options)
    assert list(model.given[-1].values()) == ["first", -2, False, 3, 7, 50]
    assert np.load(tmp_path / "b.npy").dtype == np.float16


def test_standard_input_in_a_named_format(run: Callable[..., Result], tmp_path: Path) -> None:
    lines = '{"body": "one"}\n{"body": null}\n'
    options = ["--format", "jsonl", "--field", "body", "--null-as-empty"]
    result = run("-", "--out", tmp_path / "v.npy", *options, text=lines)
    assert result.exit_code == 0, result.output
    assert np.load(tmp_path / "v.npy")[:, 0].tolist() == [3, 0]


def test_an_interrupt_says_how_to_go_on_and_the_command_continues(
    run: Callable[..., Result], model: FakeModel, tmp_path: Path
) -> None:
    model.interrupt_at = 2
    result = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert result.exit_code == 130
    assert "stopped; 4 texts are safe, and the same command continues there" in result.stderr
    model.interrupt_at = -1
    model.digest = "other"
    refused = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert isinstance(refused.exception, UserError) and "model was 'd1gest' and is now 'other'" in str(
        refused.exception
    )
    model.digest = "d1gest"
    result = run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert "5 texts (4 of them by earlier runs)" in result.stdout


def test_a_finished_file_needs_overwrite(run: Callable[..., Result], tmp_path: Path) -> None:
    run(tmp_path / "in.csv", "--out", tmp_path / "v.npy")
    assert isinstance(run(tmp_path / "in.csv", "--out", tmp_path / "v.npy").exception, UserError)
    assert run(tmp_path / "in.csv", "--out", tmp_path / "v.npy", "--overwrite").exit_code == 0


@pytest.mark.parametrize(("fraction", "known"), [(0.25, True), (None, False)])
def test_the_bar_shows_rates_and_percent_where_known(
    monkeypatch: pytest.MonkeyPatch, fraction: float | None, known: bool
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(bertie.cli.embed, "console", Console(file=screen, force_terminal=True, width=120))
    bar = bertie.cli.embed.EmbedBar()
    with bar.progress:
        bar.show(EmbedProgress(0, 0, fraction and 0.0, 0.0, 0.0))
        bar.show(EmbedProgress(2048, 40_000, fraction, 512.0, 10_000.0))
    drawn = screen.getvalue()
    assert "2,048 texts" in drawn and "512 texts/s, 10,000 tokens/s" in drawn
    assert ("25%" in drawn) == known


def test_vectors_that_nobody_should_compare_are_told(
    run: Callable[..., Result], model: FakeModel, tmp_path: Path
) -> None:
    assert "bertie whiten" not in run(tmp_path / "in.csv", "--out", tmp_path / "a.npy").stderr
    model.makes_raw_vectors = True
    result = run(tmp_path / "in.csv", "--out", tmp_path / "b.npy")
    assert "never learned" in result.stderr and "bertie finetune similarity --siamese" in result.stderr
    assert "bertie whiten" in result.stderr and "never learned" not in result.stdout
